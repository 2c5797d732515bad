"""Quarantine: the records no silver table takes, with their bytes and the reason."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headgate.spec.model import Source
from headgate.tables.frames import struct_type
from headgate.tables.projection import Projection


def quarantine_type(source: Source) -> StructType:
    """``table`` is null where the record failed as such; ``column`` names one of the wrong type."""
    return struct_type(
        "partition int, offset bigint, event_id string, event_time timestamp, reason string, "
        f"column string, table string, value binary, {source.place} string, ingested_at timestamp"
    )


class Quarantining:
    """Which bronze rows go to quarantine, and as what. Its expressions are made once."""

    def __init__(self, source: Source) -> None:
        computed = {
            "column": F.col("reason_column"),
            "table": F.lit(None).cast("string"),
        }
        self._wrong = ~F.col("duplicate") & F.col("reason").isNotNull()
        names = quarantine_type(source).fieldNames()
        self._columns = Projection(*(computed.get(name, F.col(name)).alias(name) for name in names))

    def quarantined(self, bronze: DataFrame) -> DataFrame:
        """The rows of ``quarantine_type`` among some bronze rows. A duplicate is never among
        them: its first copy already tells the story."""
        return self._columns.of(bronze.where(self._wrong))
