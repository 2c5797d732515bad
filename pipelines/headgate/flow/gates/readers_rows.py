"""The rows of a gold table that readers see while its rebuild is validated."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.lake.tables.frames import Rows
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.table import Table


def readers_rows(
    spark: SparkSession, rebuild: Table, version: DataFrame, key: Sequence[str]
) -> DataFrame:
    """The rows of the current table, with the columns of a ``version`` of its rebuild, and null in
    those that it does not have. None of them if it has another ``key``."""
    current = rebuild.with_log(rebuild.name)
    if not current.exists:
        return version.limit(0)
    current.refresh()
    rows = Rows(spark, current).of(live_files(current.handle))
    held = {field.name: field.dataType for field in rows.schema}
    wanted = {field.name: field.dataType for field in version.schema}
    if any(held.get(name) != wanted[name] for name in key):
        return version.limit(0)
    return rows.select(
        *(
            F.col(f"`{name}`") if name in held else F.lit(None).cast(type_).alias(name)
            for name, type_ in wanted.items()
        )
    )
