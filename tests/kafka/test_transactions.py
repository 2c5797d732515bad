"""Transactions: aborted records are never read, and an open transaction holds back later
records."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.insight.ledger.by_id import by_id
from headgate.setup.broker.running import Broker
from tests.oracle import derive
from tests.support.broker import Transaction, create_topic, produce
from tests.support.events import reading
from tests.support.kafka_engine import KafkaEngine, records_of
from tests.support.readings import NOON, declare_kafka, rules
from tests.support.tables import differences, read, state
from tests.support.waiting import wait_until

pytestmark = pytest.mark.spark

GOLD = ("bands",)


def some(name: str, count: int = 5, minute: int = 0) -> list[bytes]:
    at = NOON + timedelta(minutes=minute)
    return [
        reading(f"{name}-{k}", at + timedelta(seconds=k), level=k, value=1) for k in range(count)
    ]


def ids(engine: KafkaEngine) -> set[str]:
    return {row["event_id"].rpartition("-")[0] for row in read(engine.root, "bronze/raw")}


def is_right(engine: KafkaEngine, broker: Broker, topic: str, partitions: int) -> None:
    records = records_of(broker, topic)
    expected = derive(records, rules(gold=GOLD), partitions=range(partitions))
    assert differences(engine.root, expected) == {}
    places = [(row["partition"], row["offset"]) for row in read(engine.root, "bronze/raw")]
    assert sorted(places) == sorted((r.partition, r.offset) for r in records)
    proof = by_id(engine.layout, engine.pipeline)
    assert (proof.findings, proof.rows) == ((), len(records))


def test_aborted_records_never_appear(spark: SparkSession, tmp_path: Path, broker: Broker) -> None:
    topic = create_topic(broker, 2)
    pipeline = declare_kafka(tmp_path, broker.servers, topic=topic, max_per_batch=25, gold=GOLD)
    produce(broker, topic, some("plain"))
    produce(broker, topic, some("aborted"), "abort")
    one, other = Transaction(broker, topic), Transaction(broker, topic)
    for k in range(3):
        one.send(*some(f"kept{k}", minute=k), partition=k % 2)
        other.send(*some(f"dropped{k}", minute=k), partition=k % 2)
    other.abort()
    one.commit()
    produce(broker, topic, some("committed", minute=4), "commit")
    # The logs end with aborted records and with markers, which are never read.
    produce(broker, topic, some("last", 20), "abort")
    engine = KafkaEngine(spark, pipeline, tmp_path / "root")
    engine.read_all()
    assert ids(engine) == {"plain", "kept0", "kept1", "kept2", "committed"}
    is_right(engine, broker, topic, 2)
    # Everything was read, including the end of the logs: a new driver finds nothing.
    assert not engine.start().list_new()
    engine.close()


def test_an_open_transaction_holds_back_what_is_behind_it(
    spark: SparkSession, tmp_path: Path, broker: Broker
) -> None:
    topic = create_topic(broker, 1)
    pipeline = declare_kafka(tmp_path, broker.servers, topic=topic, gold=GOLD)
    produce(broker, topic, some("before"))
    still_open = Transaction(broker, topic)
    still_open.send(*some("open", minute=1))
    produce(broker, topic, some("behind", minute=2))
    engine = KafkaEngine(spark, pipeline, tmp_path / "root")
    engine.read_all()
    assert ids(engine) == {"before"}
    assert state(engine.root, "bronze/raw")["offsets"] == {"0": 5}
    assert engine.source.backlog().count == 0
    still_open.commit()
    # Kafka answers before readers see the commit.
    wait_until(engine.list_new, "the commit is not visible", 30)
    engine.read_all()
    assert ids(engine) == {"before", "open", "behind"}
    is_right(engine, broker, topic, 1)
    engine.close()


def test_uncommitted_reading_takes_everything(
    spark: SparkSession, tmp_path: Path, broker: Broker
) -> None:
    topic = create_topic(broker, 1)
    pipeline = declare_kafka(
        tmp_path, broker.servers, topic=topic, isolation="read_uncommitted", gold=GOLD
    )
    produce(broker, topic, some("aborted"), "abort")
    still_open = Transaction(broker, topic)
    still_open.send(*some("open", minute=1))
    engine = KafkaEngine(spark, pipeline, tmp_path / "root")
    engine.read_all()
    assert ids(engine) == {"aborted", "open"}
    still_open.abort()
    engine.close()
