"""Reads a range of topics with Spark's own reader, as one batch."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headgate.flow.sources.kafka.cluster import client_properties
from headgate.flow.sources.kafka.declared import KafkaSource
from headgate.flow.sources.kafka.ranges import Offsets
from headgate.flow.sources.kafka.topics import Partition
from headgate.flow.sources.records import FrameRecords
from headgate.lake.tables.projection import Projection
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
        partitions: Mapping[int, Partition],
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


def _by_topic(values: Mapping[Partition, Value]) -> dict[str, list[Value]]:
    found: defaultdict[str, list[Value]] = defaultdict(list)
    for partition, value in values.items():
        found[partition.topic].append(value)
    return dict(found)
