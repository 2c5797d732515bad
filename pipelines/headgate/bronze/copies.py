"""Mended copies of records, as a replay brings them to bronze."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headgate.bronze.id_index import Flags
from headgate.declaration.model import Source
from headgate.declaration.sources import kind_of_source
from headgate.tables.record_shape import record_shape
from headgate.tables.replay import Position, positions_of

POSITION = ["partition", "offset"]


def copies_schema(source: Source) -> pa.Schema:
    """``partition`` and ``offset`` are those of the source's record that a copy goes back to, and
    ``was_valid`` says whether bronze took the mended record for valid. ``value`` is the copy; for
    CSV it is a JSON object of its cells as texts. The other columns are as in
    ``tables.record_shape``."""
    time = pa.timestamp("us", "UTC")
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    return pa.schema(
        [
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("was_valid", pa.bool_()),
            ("value", pa.binary()),
            ("key", pa.binary()),
            ("headers", pa.list_(header)),
            (kind_of_source(source).place, pa.string()),
            ("ingested_at", time),
            ("seen_at", time),
        ]
    )


@dataclass(frozen=True)
class MendedCopies:
    """``rows`` has ``copies_schema`` of ``source``, sorted by position; no position is there
    twice."""

    source: Source
    rows: pa.Table

    @property
    def was_valid(self) -> Flags:
        return np.asarray(self.rows.column("was_valid").to_numpy(), np.bool_)

    def of(self, positions: Iterable[Position]) -> MendedCopies:
        """The copies that go back to some records of the source."""
        wanted = frozenset(positions)
        kept = [each in wanted for each in positions_of(self.rows, POSITION)]
        return replace(self, rows=self.rows.filter(pa.array(kept, pa.bool_())))

    def records(self, spark: SparkSession) -> DataFrame:
        """The copies as records at the positions of the source's records. Their ids are then the
        same where a record's id is its position."""
        kind = kind_of_source(self.source)
        rows = spark.createDataFrame(self.rows.drop_columns("was_valid"))
        rows = rows.withColumn("value", F.col("value").cast("string"))
        wanted = record_shape(kind.place)
        if kind.format(self.source.reads) == "csv":
            rows, wanted = rows.withColumn("parse", F.col("value")), f"{wanted}, parse string"
        shape = StructType.fromDDL(wanted)
        assert isinstance(shape, StructType)
        return rows.to(shape)

    def moved(self, rows: DataFrame, first: int) -> DataFrame:
        """Bronze's rows of the copies at their own positions, the first at the offset ``first``."""
        known = self.rows.select(POSITION)
        known = known.append_column("_own", pa.array(range(first, first + len(known)), pa.int64()))
        joined = rows.join(F.broadcast(rows.sparkSession.createDataFrame(known)), POSITION)
        own = {"partition": F.bitwise_not("partition"), "offset": F.col("_own")}
        return joined.select(*(own.get(name, F.col(name)).alias(name) for name in rows.columns))
