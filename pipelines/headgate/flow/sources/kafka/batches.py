"""A batch is a range of partitions, read with Spark's own reader.

The stream and the loads of a source share this.
"""

from __future__ import annotations

import json
import math
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headgate.flow.sources.kafka.cluster import Cluster, client_properties
from headgate.flow.sources.kafka.declared import KafkaSource
from headgate.flow.sources.kafka.failures import read_failure, readable_before
from headgate.flow.sources.kafka.ranges import Offsets, next_range, unread
from headgate.flow.sources.kafka.topics import TopicListing, TopicPartition, decoded_offsets
from headgate.flow.sources.micro_batches import (
    BatchEnd,
    MicroBatchSource,
    SourceBatch,
    SourceContext,
)
from headgate.flow.sources.records import FrameRecords
from headgate.lake.tables.frames import Projection
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.record_shape import HEADERS

_POLL = 30_000  # milliseconds without an answer until a task fails
# Milliseconds, unless the declaration's options set them. Spark requests offsets before it reads,
# by default three times for a minute each. The source retries itself, and its retries can be
# stopped.
_ASKING = {"kafka.default.api.timeout.ms": "15000", "kafka.request.timeout.ms": "15000"}
_LOG_APPEND_TIME = 1
_FIRST, _LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)

Value = TypeVar("Value")


class KafkaReader:
    """Reads ranges of one source. ``group`` is the group id of the consumers, which Spark keeps
    from batch to batch. They commit no offsets to it."""

    def __init__(self, spark: SparkSession, source: KafkaSource, group: str, cores: int) -> None:
        self._spark = spark
        options = {f"kafka.{k}": v for k, v in client_properties(source).items()}
        if not options.keys() & _ASKING.keys():
            options |= _ASKING
        options |= {
            "fetchOffset.numRetries": "1",
            "kafka.group.id": group,
            "kafka.isolation.level": source.isolation,
            "includeHeaders": "true",
            "failOnDataLoss": "true",
            "minPartitions": str(cores),
            "kafkaConsumer.pollTimeoutMs": str(_POLL),
        }
        self._options = options
        # A producer's time is not the arrival time: the record arrived no later than it was read.
        made = F.col("timestampType") == _LOG_APPEND_TIME
        # -1 is Kafka's word for no timestamp. One in microseconds, not milliseconds, gives a year
        # that few readers can show.
        given = F.col("timestamp")
        sent_at = F.when(given.between(F.lit(_FIRST), F.lit(_LAST)), given)
        seen_at = F.coalesce(F.when(made, sent_at), F.least(sent_at, F.col("now")))
        self._record = Projection(
            "value",
            "key",
            F.col("headers").cast(str(HEADERS)).alias("headers"),
            (F.col("base") + F.col("partition")).alias("partition"),
            "offset",
            "topic",
            sent_at.alias("ingested_at"),
            seen_at.alias("seen_at"),
        )

    def read(
        self,
        partitions: Mapping[int, TopicPartition],
        position: Offsets,
        reached: Offsets,
        now: datetime,
        record_size: float,
    ) -> FrameRecords:
        """The records in ``[position, reached)`` of the partitions for which these differ.
        ``record_size`` is about how many bytes a record has."""
        moved = [p for n, p in partitions.items() if reached[n] > position[n]]
        reader = self._spark.read.format("kafka").options(**self._options)
        reader = reader.option("assign", json.dumps(_by_topic({p: p.partition for p in moved})))
        for name, offsets in (("startingOffsets", position), ("endingOffsets", reached)):
            wanted = {p: (str(p.partition), offsets[p.number]) for p in moved}
            reader = reader.option(
                name, json.dumps({t: dict(pairs) for t, pairs in _by_topic(wanted).items()})
            )
        topics = {p.topic: p.number - p.partition for p in moved}
        # A frame instead of literals: Spark would compile changing literals in every batch.
        known = pa.table(
            {
                "topic": list(topics),
                "base": pa.array(topics.values(), pa.int32()),
                "now": pa.array([now] * len(topics), pa.timestamp("us", "UTC")),
            }
        )
        rows = reader.load().join(F.broadcast(self._spark.createDataFrame(known)), "topic")
        count = sum(reached[p.number] - position[p.number] for p in moved)
        return FrameRecords(self._record.of(rows), count, record_size)


def _by_topic(values: Mapping[TopicPartition, Value]) -> dict[str, list[Value]]:
    found: defaultdict[str, list[Value]] = defaultdict(list)
    for partition, value in values.items():
        found[partition.topic].append(value)
    return dict(found)


@dataclass(frozen=True)
class KafkaRange:
    """The records of the listed partitions from the position ``at`` to the offsets ``reached``. The
    ``idle`` partitions come from the same listing."""

    at: BronzePayload
    listing: TopicListing
    reached: Offsets
    idle: frozenset[int] = frozenset()

    @cached_property
    def position(self) -> Offsets:
        return self.listing.position(decoded_offsets(self.at.offsets))

    @property
    def partitions(self) -> list[int]:
        """The partitions that have records in the range."""
        return [number for number, end in self.reached.items() if end > self.position[number]]

    @property
    def records(self) -> int:
        return sum(self.reached.values()) - sum(self.position.values())


class KafkaBatches(MicroBatchSource[KafkaRange]):
    """``_limit`` is the most records of the next batch, ``_record_size`` about how many bytes a
    record has. ``group`` begins the group id of the consumers."""

    every = 1.0  # seconds between listings of the logs' ends

    _limit: int
    _record_size: float

    def __init__(self, context: SourceContext, group: str) -> None:
        self._context = context
        self._source: KafkaSource = context.source.reads
        self._cluster = Cluster(context.spark, self._source, context.check)
        group = f"{group}-{context.epoch}"
        self._reader = KafkaReader(context.spark, self._source, group, context.cores)

    def pending(self, at: BronzePayload) -> int:
        return math.ceil(sum(self._unread(at).values()) / self._limit)

    def next_range(self, at: BronzePayload) -> KafkaRange | None:
        listing, ends, idle = self._view(at)
        position = listing.position(decoded_offsets(at.offsets))
        reached = next_range(position, ends, self._limit)
        return None if reached == position else KafkaRange(at, listing, reached, idle)

    def read(self, planned: KafkaRange, now: datetime) -> SourceBatch:
        partitions, size = planned.listing.partitions, self._record_size
        rows = self._reader.read(partitions, planned.position, planned.reached, now, size)

        def verify() -> None:
            self._verify(planned)
            self._record_size = rows.record_size

        return SourceBatch(rows, self._end(planned, now), verify)

    def failed(self, planned: KafkaRange, error: Exception, *, is_last: bool) -> KafkaRange | None:
        if before := self._readable_before(error, planned):
            return replace(planned, reached={**planned.reached, **before})
        # This also precedes giving up: what it raises is the cause of the failure.
        self._require_input(planned)
        if is_last and (failure := read_failure(error, self._source)) is not None:
            raise failure from None  # the text of its cause may show secrets
        # The records may have been too large for the driver: workers read the next attempt.
        self._record_size = math.inf
        return None

    def close(self) -> None:
        self._cluster.close()

    def _unread(self, at: BronzePayload) -> dict[int, int]:
        listing, ends, _ = self._view(at)
        return unread(listing.position(decoded_offsets(at.offsets)), ends)

    @abstractmethod
    def _view(self, at: BronzePayload) -> tuple[TopicListing, Offsets, frozenset[int]]:
        """The listing, the ends up to which is read, and the idle partitions."""

    @abstractmethod
    def _end(self, planned: KafkaRange, now: datetime) -> BatchEnd:
        """The end of the batch that has the records of a range."""

    @abstractmethod
    def _verify(self, planned: KafkaRange) -> None:
        """Raises OffsetsLostError if a topic was recreated while it was read: the new topic has
        other records at the same offsets."""

    @abstractmethod
    def _require_input(self, planned: KafkaRange) -> None:
        """After a failed read, raises BrokersUnreachableError if the brokers do not answer, and
        OffsetsLostError if records that are to be read are lost."""

    def _readable_before(self, error: Exception, planned: KafkaRange) -> dict[int, int]:
        """As ``readable_before``."""
        return readable_before(error, planned.listing.partitions, planned.position)
