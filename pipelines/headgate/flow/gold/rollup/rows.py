"""The final rows of a gold table, as rows that a rollup can read."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.declaration.contracts.operator import bounds_of, columns_of, key_of_gold
from headgate.declaration.model import GoldTable
from headgate.declaration.names import SILVER_IDENTITY
from headgate.flow.gold.schema import declared_rows
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.frames import Projection, struct_of
from headgate.lake.tables.table import Table


class FinalRows:
    """Reads final rows of ``declared``. They have the columns of
    ``declaration.sections.gold.scope_of_rollups`` and those that an operator needs: the event time
    is the last microsecond of the result, no watermark makes a row late, and the place of a row in
    the order of rows with the same event time is a hash of its key of 128 bits."""

    def __init__(self, spark: SparkSession, table: Table, declared: GoldTable) -> None:
        self._declared = declared
        self._rows = declared_rows(spark, table, declared)
        bounds = bounds_of(declared)
        # The last microsecond of a result; one that has a single time has no other.
        last = F.unix_micros(bounds[-1]) - F.lit(len(bounds) - 1)
        result = struct_of(columns_of(declared)).alias(declared.name)
        key = struct_of(key_of_gold(declared))
        place = {
            "_partition": F.hash(key),
            "_offset": F.xxhash64(key),
            "_item": F.hash(F.lit("item"), key),
        }
        self._as_read = Projection(
            *(f"`{name}`" for name in declared.types),
            *([] if declared.name in declared.types else [result]),
            F.timestamp_micros(last).alias("_event_time"),
            F.lit(None).cast("timestamp").alias("_clock"),
            *(place[name].cast(str(type_)).alias(name) for name, type_ in SILVER_IDENTITY.items()),
        )

    def of(self, files: Sequence[DataFile]) -> DataFrame:
        """The rows of some files. Raises DamagedFileError."""
        return self._as_read.of(self._rows.of(files))

    def removed(self, files: Sequence[DataFile], moved: Sequence[DataFile]) -> DataFrame:
        """The rows of files that a commit has removed, without those that it has moved to other
        files. Raises DamagedFileError."""
        key = list(key_of_gold(self._declared))
        still_there = self._rows.of(moved).select(struct_of(key).alias("_key"))
        rows = self._rows.of(files).withColumn("_key", struct_of(key))
        return self._as_read.of(rows.join(still_there, "_key", "left_anti").drop("_key"))
