"""From a bronze row to a silver row: frames in, frames out."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headgate.spec.model import Record, SilverTable
from headgate.tables.frames import struct_type


def silver_type(table: SilverTable, record: Record) -> StructType:
    """The table's columns, then ours: the event's id, position, clock and time."""
    declared = ", ".join(f"`{c.name}` {c.type}" for c in table.schema)
    rescued = ", _rescued string" if record.unknown_fields == "rescue" else ""
    return struct_type(
        f"{declared}, _event_id string, _partition int, _offset bigint, _clock timestamp, "
        f"_event_time timestamp{rescued}"
    )


def conform(bronze: DataFrame, table: SilverTable) -> DataFrame:
    """Silver's columns of every bronze row, with ``_outcome``: silver, filtered, quarantined or
    duplicate. Rows with another outcome than silver are for counting only."""
    rows = bronze.select("record.*", *_ours())
    derived = {c.name: F.expr(f"cast(({c.expression}) as {c.type})") for c in table.columns}
    rows = rows.withColumns(derived)
    passes = F.expr(table.where) if table.where else F.lit(True)
    outcome = (
        F.when(F.col("_duplicate"), "duplicate")
        .when(F.col("_reason").isNotNull(), "quarantined")
        .when(F.coalesce(passes, F.lit(False)), "silver")
        .otherwise("filtered")
    )
    return rows.withColumn("_outcome", outcome)


def _ours() -> list[Column]:
    return [
        F.col("event_id").alias("_event_id"),
        F.col("partition").alias("_partition"),
        F.col("offset").alias("_offset"),
        F.col("clock").alias("_clock"),
        F.col("event_time").alias("_event_time"),
        F.col("rescued").alias("_rescued"),
        F.col("duplicate").alias("_duplicate"),
        F.col("reason").alias("_reason"),
    ]
