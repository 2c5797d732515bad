"""Writing a batch's files with Spark, before anybody can see them.

Every attempt has a folder of its own, so nothing is ever overwritten: a file that no commit
names is an orphan, left to vacuum.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from headgate.failpoints import failpoint
from headgate.tables.arrow import attempt_folder, describe
from headgate.tables.state import State
from headgate.tables.table import DataFile, Table


def stage(
    table: Table, state: State, rows: DataFrame, *, time_column: str, unique: Sequence[str] = ()
) -> tuple[DataFile, ...]:
    """Write ``rows`` as Parquet into this attempt's folder and describe the files that have rows.

    ``time_column`` is the timestamp whose minimum and maximum go into the log. ``unique`` names
    columns of unique values, where trying a dictionary costs more than it saves.
    """
    folder = attempt_folder(state)
    writer = rows.write.mode("error")
    for column in unique:
        writer = writer.option(f"parquet.enable.dictionary#{column}", "false")
    if table.partition_by:
        writer = writer.partitionBy(*table.partition_by)
    writer.parquet(table.storage.uri(folder))
    files = tuple(f for f in describe(table.storage, folder, time_column) if f.rows)
    failpoint(f"{table.name.partition('/')[0]}.staged")
    return files


def paths(table: Table, files: Sequence[DataFile]) -> list[str]:
    """Full addresses, as Spark reads them."""
    return [table.storage.uri(f.path) for f in files]
