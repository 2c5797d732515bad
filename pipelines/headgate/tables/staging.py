"""Writing a batch's files with Spark, before anybody can see them.

Every attempt has a folder of its own, so nothing is ever overwritten: a file that no commit
names is an orphan, left to vacuum.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from headgate.failpoints import failpoint
from headgate.tables.arrow import attempt_folder, describe
from headgate.tables.state import State
from headgate.tables.table import DataFile, Table


def stage(table: Table, state: State, rows: DataFrame, *, time_column: str) -> tuple[DataFile, ...]:
    """Write ``rows`` as Parquet into this attempt's folder and describe the files that have rows.

    ``time_column`` is the timestamp whose minimum and maximum go into the log.
    """
    folder = attempt_folder(state)
    writer = rows.write.mode("error")
    if table.partition_by:
        writer = writer.partitionBy(*table.partition_by)
    writer.parquet(table.storage.uri(folder))
    files = tuple(f for f in describe(table.storage, folder, time_column) if f.rows)
    failpoint(f"{table.name.partition('/')[0]}.staged")
    return files
