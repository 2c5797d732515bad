"""The bronze stage: one source range in, one commit out. That commit is the checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.bronze.reasons import AFTER_DIFFERING, Reason
from headgate.bronze.record import parse
from headgate.bronze.schema import bronze_type
from headgate.bronze.seen import SEEN, Seen, Span
from headgate.bronze.sequencing import THIN, Sequenced, in_log_order, sequence
from headgate.tables.record_shape import RECORD_SHAPE
from headgate.spec.model import Source
from headgate.storage.files import Storage
from headgate.storage.layout import Layout
from headgate.tables.frames import arrow_schema, held_in_memory, micros, read_files
from headgate.tables.history import live_files
from headgate.tables.staging import stage
from headgate.tables.state import State, add_counts
from headgate.tables.table import Table

UNIQUE = ("value", "offset", "event_id")
"""Columns that a dictionary cannot shrink."""


class BronzeStage:
    """The only writer of ``bronze/<source>``. ``partitions`` says how many the source lists."""

    def __init__(
        self, spark: SparkSession, storage: Storage, pipeline: str, source: Source, partitions: int = 1
    ) -> None:
        self._spark = spark
        self._source = source
        self._partitions = partitions
        self.type = bronze_type(source.record)
        self.table = Table(storage, Layout.bronze(source.name), pipeline=pipeline)
        self._seen: Seen | None = None

    def create(self, definition: str) -> None:
        self.table.create(arrow_schema(self.type), definition)

    def absorb(
        self, records: DataFrame, end: Mapping[str, int], now: datetime, verify: Callable[[], None]
    ) -> State:
        """Commit the records of a source range that ends at ``end`` as the next batch.

        ``records`` has the shape of ``tables.record_shape``; ``verify`` is called after they
        were read and raises if they changed meanwhile. Raises CommitRefusedError or FencedError.
        """
        held = self.table.refresh()
        parsed = parse(records, self._source.record, self._source.files.format)
        with held_in_memory(parsed) as rows:
            ordered = in_log_order(self._thin(rows))
            sequenced = sequence(
                ordered, held.clocks, held.closing, self._partitions, self._index(held)
            )
            counts = _counts(ordered, sequenced)
            state = replace(
                held,
                kind="data",
                from_n=held.n,
                n=held.n + 1,
                offsets=dict(end),
                clocks=dict(sequenced.clocks),
                closing=sequenced.closing,
                batch=counts,
                total=add_counts(held.total, counts),
                at=int(now.timestamp() * 1_000_000),
            )
            stamped = self._stamped(rows, sequenced)
            files = stage(self.table, state, stamped, time_column="event_time", unique=UNIQUE)
        verify()
        committed = self.table.commit(state, add=files)
        if self._seen is not None:
            self._seen.add(ordered)
        return committed

    def no_records(self) -> DataFrame:
        """A range without a record still is a batch: it moves the source offsets on."""
        return self._spark.createDataFrame([], RECORD_SHAPE)

    def _thin(self, rows: DataFrame) -> pa.Table:
        has_id = bool(self._source.record.event_id)
        event_id = F.col("event_id") if has_id else F.lit(None).cast("string")
        future = F.coalesce(F.col("reason") == Reason.FUTURE.value, F.lit(False))
        table = rows.select(
            "partition",
            "offset",
            F.when(~future, F.unix_micros("event_time")).alias("time"),
            *hashes(event_id),
            "reason",
        ).toArrow()
        return table.cast(THIN)

    def _stamped(self, rows: DataFrame, sequenced: Sequenced) -> DataFrame:
        stamps = F.broadcast(self._spark.createDataFrame(sequenced.stamps))
        joined = rows.join(stamps, ["partition", "offset"], "left")
        reason = F.col("reason")
        duplicates = self._source.record.duplicates
        if duplicates and duplicates.differing == "quarantine":
            gives_way = reason.isNull() | reason.isin(*(r.value for r in AFTER_DIFFERING))
            reason = F.when(
                F.coalesce("differing", F.lit(False)) & gives_way, Reason.DIFFERING_DUPLICATE.value
            ).otherwise(reason)
        joined = joined.withColumn("duplicate", F.coalesce("duplicate", F.lit(False)))
        return joined.withColumn("reason", reason).select(*self.type.fieldNames())

    def _index(self, held: State) -> Seen | None:
        rule = self._source.record.duplicates
        if rule is None or not self._source.record.event_id:
            return None
        if self._seen is None:
            newest = max(held.clocks.values(), default=None)
            self._seen = Seen(micros(rule.within), rule.differing, self._load_seen, newest)
        return self._seen

    def _load_seen(self, spans: Sequence[Span]) -> pa.Table:
        """The ids of bronze whose event times lie in ``spans``."""
        self.table.refresh()
        files = live_files(self.table.handle)
        if not files:
            return SEEN.empty_table()
        rows = read_files(self._spark, self.table, files)
        time = F.unix_micros("event_time")
        wanted = F.lit(False)
        for first, last in spans:
            low = F.timestamp_micros(F.lit(first))
            wanted |= F.col("event_time").between(low, F.timestamp_micros(F.lit(last)))
        future = F.coalesce(F.col("reason") == Reason.FUTURE.value, F.lit(False))
        known = rows.where(wanted & ~future & F.col("event_id").isNotNull())
        columns = ["partition", time.alias("time"), *hashes(F.col("event_id"))]
        return known.select(*columns).toArrow().cast(SEEN)


def hashes(event_id: Column) -> tuple[Column, ...]:
    """Two independent hashes of the id and one of the content; null without an id."""
    return (
        F.when(event_id.isNotNull(), F.xxhash64(event_id)).alias("hash_a"),
        F.when(event_id.isNotNull(), F.xxhash64(F.lit("headgate"), event_id)).alias("hash_b"),
        F.xxhash64("value").alias("content"),
    )


def _counts(ordered: pa.Table, sequenced: Sequenced) -> dict[str, int]:
    return {
        "read": ordered.num_rows,
        "duplicate": sequenced.duplicates,
        "differing": sequenced.differing,
    }
