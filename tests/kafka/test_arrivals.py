"""Bronze's commits record when the oldest record of the batch arrived, as seen by the driver."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import time_of
from headgate.setup.broker.running import Broker
from tests.support.broker import Sent, create_topic, produce
from tests.support.events import reading
from tests.support.kafka_engine import KafkaEngine
from tests.support.landing import ARRIVED
from tests.support.readings import NOON, declare_kafka

pytestmark = pytest.mark.spark


def send(broker: Broker, topic: str, *partitions: int) -> None:
    records = [
        Sent(reading(f"{p}-{n}", NOON, value=1, level=3), partition=p, at=ARRIVED)
        for n, p in enumerate(partitions)
    ]
    produce(broker, topic, records)


def arrived(engine: KafkaEngine) -> datetime | None:
    micros = BronzePayload.of(engine.bronze.refresh()).arrived
    return None if micros is None else time_of(micros)


def test_the_oldest_record_of_a_batch_counts(
    spark: SparkSession, tmp_path: Path, broker: Broker
) -> None:
    topic = create_topic(broker, 2)
    pipeline = declare_kafka(tmp_path, broker.servers, topic=topic, gold=("bands",))
    engine = KafkaEngine(spark, pipeline, tmp_path / "root", now=ARRIVED)
    send(broker, topic, 0)
    engine.list_new()
    engine.wait(7)
    send(broker, topic, 1)
    engine.list_new()
    engine.wait(3)
    engine.ingest()
    first = arrived(engine)
    assert first is not None
    assert timedelta() <= first - ARRIVED < timedelta(seconds=1)
    send(broker, topic, 1)
    engine.list_new()
    engine.wait(2)
    engine.ingest()
    second = arrived(engine)
    assert second is not None
    assert abs(second - ARRIVED - timedelta(seconds=10)) < timedelta(seconds=1)
    engine.start()
    assert arrived(engine) is None, "a fence has no records"
    engine.close()
