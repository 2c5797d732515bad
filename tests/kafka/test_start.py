"""Reading begins at the declared start, which applies once, whatever happens afterwards."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.flow.sources.errors import SourceError
from headgate.flow.sources.kafka import cluster
from headgate.flow.sources.kafka.cluster import Cluster
from headgate.flow.sources.kafka.failures import BrokersUnreachableError
from headgate.setup.broker.running import Broker
from tests.support.broker import Sent, add_partitions, create_topic, produce
from tests.support.declared import kafka_of
from tests.support.events import reading
from tests.support.kafka_engine import KafkaEngine
from tests.support.landing import ARRIVED
from tests.support.readings import NOON, declare_kafka
from tests.support.tables import read, state

pytestmark = pytest.mark.spark

TEN_PAST = ARRIVED + timedelta(minutes=10)
STARTS: dict[str, list[set[int]]] = {
    "earliest": [{0, 1, 2, 3}, {0, 1, 2, 3}],
    "latest": [set(), set()],
    # The first record at or after this time; partition 1 has no record that late.
    f'"{(ARRIVED + timedelta(minutes=15)).isoformat()}"': [{3}, set()],
    f'"{TEN_PAST.isoformat()}"': [{2, 3}, set()],
    "{0: 1, 1: 4}": [{1, 2, 3}, set()],
    "{1: 2}": [{0, 1, 2, 3}, {2, 3}],
}


def send(broker: Broker, topic: str, count: int, partitions: int = 2, after: int = 0) -> None:
    """In partition 0 a record every five minutes, in the others every minute."""
    records = [
        Sent(
            reading(f"{p}-{k}", NOON + timedelta(seconds=k), value=1),
            partition=p,
            at=ARRIVED + timedelta(minutes=k * (5 if p == 0 else 1)),
        )
        for k in range(after, after + count)
        for p in range(partitions)
    ]
    produce(broker, topic, records)


def was_read(engine: KafkaEngine, partitions: int = 2) -> list[set[int]]:
    rows = read(engine.root, "bronze/raw")
    return [{row["offset"] for row in rows if row["partition"] == p} for p in range(partitions)]


@pytest.mark.parametrize("start", STARTS)
def test_the_declared_start(
    spark: SparkSession, tmp_path: Path, broker: Broker, start: str
) -> None:
    topic = create_topic(broker, 2)
    send(broker, topic, 4)
    pipeline = declare_kafka(tmp_path, broker.servers, topic=topic, start=start, gold=("bands",))
    engine = KafkaEngine(spark, pipeline, tmp_path / "root")
    assert state(engine.root, "bronze/raw")["n"] == 1
    # The first driver ends before it has read anything; records that come meanwhile are read.
    engine.close()
    send(broker, topic, 2, after=4)
    engine.start()
    while engine.list_new():
        engine.ingest()
    assert was_read(engine) == [offsets | {4, 5} for offsets in STARTS[start]]
    engine.close()


def test_a_partition_that_comes_later_is_read_from_its_beginning(
    spark: SparkSession, tmp_path: Path, broker: Broker
) -> None:
    topic = create_topic(broker, 1)
    send(broker, topic, 2, partitions=1)
    pipeline = declare_kafka(tmp_path, broker.servers, topic=topic, start="latest", gold=("bands",))
    engine = KafkaEngine(spark, pipeline, tmp_path / "root")
    add_partitions(broker, topic, 2)
    send(broker, topic, 1, after=2)
    assert engine.list_new()
    engine.ingest()
    assert was_read(engine) == [{2}, {0}]
    engine.close()


def test_an_offset_that_the_topic_does_not_have(
    spark: SparkSession, tmp_path: Path, broker: Broker
) -> None:
    topic = create_topic(broker, 1)
    send(broker, topic, 2, partitions=1)
    pipeline = declare_kafka(tmp_path, broker.servers, topic=topic, start="{0: 3}", gold=("bands",))
    with pytest.raises(SourceError, match=f"{topic}/0 has no offset 3; it has 0 to 2"):
        KafkaEngine(spark, pipeline, tmp_path / "root")
    assert state(tmp_path / "root", "bronze/raw")["n"] == 0


def test_brokers_that_do_not_answer(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_TIMEOUT", 500)
    nobody = Cluster(spark, kafka_of(declare_kafka(tmp_path, "127.0.0.1:1", topic="bids")))
    try:
        with pytest.raises(BrokersUnreachableError, match="no answer from the brokers 127.0.0.1:1"):
            nobody.topics()
    finally:
        nobody.close()


def test_a_client_that_another_thread_has_closed_does_not_answer(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a request without an answer, a thread closes the client that the other thread uses,
    too. That is no refusal by the brokers, which a person would have to look at."""
    monkeypatch.setattr(cluster, "_TIMEOUT", 500)
    asked = Cluster(spark, kafka_of(declare_kafka(tmp_path, "127.0.0.1:1", topic="bids")))
    try:
        with pytest.raises(BrokersUnreachableError):
            asked.topics()
        client = asked._call("listTopics") and asked._client
        asked.close()
        asked._client = client
        with pytest.raises(BrokersUnreachableError):
            asked.topics()
    finally:
        asked.close()
