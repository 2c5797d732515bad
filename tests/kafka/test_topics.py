"""A pattern: topics that match it now, those that come later, and those that never match."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.flow.sources.kafka.failures import TopicMissingError
from headgate.insight.ledger.by_id import by_id
from headgate.setup.broker import topics
from headgate.setup.broker.running import Broker
from tests.oracle import SourceRecord, derive
from tests.support.broker import Sent, produce
from tests.support.events import reading, readings
from tests.support.kafka_engine import KafkaEngine, records_of
from tests.support.landing import ARRIVED
from tests.support.readings import NOON, declare_kafka, rules
from tests.support.tables import differences, read, state

pytestmark = pytest.mark.spark

GOLD = ("bands",)


def make(broker: Broker, name: str, values: Sequence[bytes], partitions: int = 2) -> None:
    topics.create(broker.servers, name, partitions)
    produce(
        broker,
        name,
        [Sent(v, partition=k % partitions, at=ARRIVED) for k, v in enumerate(values)],
    )


def test_topics_of_a_pattern(spark: SparkSession, tmp_path: Path, broker: Broker) -> None:
    prefix = f"p{uuid.uuid4().hex[:8]}"
    make(broker, f"{prefix}.b", readings(40, seed=1))
    make(broker, f"{prefix}.c", readings(40, seed=2), partitions=3)
    make(broker, f"not-{prefix}.b", readings(10, seed=9))
    make(broker, f"{prefix}.b.more", readings(10, seed=9))
    pattern = f'"{prefix}\\\\.[a-z]"'
    pipeline = declare_kafka(tmp_path, broker.servers, pattern=pattern, max_per_batch=60, gold=GOLD)
    engine = KafkaEngine(spark, pipeline, tmp_path / "root", now=ARRIVED)
    engine.read_all()
    # A topic that comes later gets a place after the others, whatever its name, and keeps it after
    # a restart. Its events are later, too: if they were behind the watermark, they would be late.
    later = [reading(f"a{k}", NOON + timedelta(minutes=50, seconds=k), value=1) for k in range(40)]
    make(broker, f"{prefix}.a", later, partitions=1)
    assert engine.list_new()
    engine.ingest()
    engine.start().read_all()
    places = {f"{prefix}.b": 0, f"{prefix}.c": 1 << 16, f"{prefix}.a": 2 << 16}
    told = [label.partition("@")[0] for label in state(engine.root, "bronze/raw")["topics"]]
    assert told == list(places)
    records: list[SourceRecord] = []
    for topic, base in places.items():
        records += records_of(broker, topic, base, read_at=ARRIVED)
    assert differences(engine.root, derive(records, rules(gold=GOLD))) == {}
    rows = read(engine.root, "bronze/raw")
    assert {(r["topic"], r["partition"] >> 16 << 16) for r in rows} == set(places.items())
    assert {(r["partition"], r["offset"]) for r in rows} == {
        (r.partition, r.offset) for r in records
    }
    assert by_id(engine.layout, engine.pipeline).findings == ()
    engine.close()


def test_a_pattern_that_nothing_matches(
    spark: SparkSession, tmp_path: Path, broker: Broker
) -> None:
    pipeline = declare_kafka(tmp_path, broker.servers, pattern='"no such .*"', gold=GOLD)
    with pytest.raises(TopicMissingError, match="matches no such"):
        KafkaEngine(spark, pipeline, tmp_path / "root")


def test_an_empty_topic_is_waited_for(spark: SparkSession, tmp_path: Path, broker: Broker) -> None:
    name = f"t{uuid.uuid4().hex[:8]}"
    make(broker, name, [], partitions=1)
    pipeline = declare_kafka(tmp_path, broker.servers, topic=name, gold=GOLD)
    engine = KafkaEngine(spark, pipeline, tmp_path / "root", now=ARRIVED + timedelta(hours=1))
    assert not engine.list_new()
    assert not engine.start().list_new()
    produce(broker, name, [Sent(v, at=ARRIVED) for v in readings(10, seed=4)])
    engine.read_all()
    records = records_of(broker, name, read_at=ARRIVED)
    assert differences(engine.root, derive(records, rules(gold=GOLD))) == {}
    engine.close()
