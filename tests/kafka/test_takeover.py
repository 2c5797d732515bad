"""A driver is replaced while a batch from Kafka is half done: it cannot commit anything more."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.lake.tables.errors import CommitRefusedError, FencedError
from headgate.setup.broker.running import Broker
from tests.oracle import derive
from tests.support.broker import Sent, create_topic, produce
from tests.support.events import readings
from tests.support.failing import passing
from tests.support.frozen import versions
from tests.support.kafka_engine import KafkaEngine, records_of
from tests.support.landing import ARRIVED
from tests.support.readings import declare_kafka, rules
from tests.support.tables import differences

pytestmark = pytest.mark.spark

GOLD = ("bands",)


@pytest.mark.parametrize("nth", [1, 2], ids=["at its start", "at a batch"])
def test_a_driver_that_was_passed_by_gets_nothing_in(
    spark: SparkSession, tmp_path: Path, broker: Broker, nth: int
) -> None:
    """The driver is replaced after bronze's files are written and before their commit: at the
    declared start, which has no records, or at a batch."""
    topic, root = create_topic(broker, 2), tmp_path / "root"
    values = readings(120, seed=7)
    produce(broker, topic, [Sent(v, partition=k % 2, at=ARRIVED) for k, v in enumerate(values)])
    pipeline = declare_kafka(tmp_path, broker.servers, topic=topic, max_per_batch=60, gold=GOLD)
    staged: list[str] = []
    after: dict[str, int] = {}

    def take_over(name: str) -> None:
        staged.extend([name] * (name == "bronze.staged"))
        if name != "bronze.staged" or len(staged) != nth:
            return
        with passing(None):
            other = KafkaEngine(spark, pipeline, root, now=ARRIVED)
            other.read_all()
            other.close()
        after.update(versions(root))

    with passing(take_over), pytest.raises((FencedError, CommitRefusedError)):
        KafkaEngine(spark, pipeline, root, now=ARRIVED).read_all()
    assert after
    assert versions(root) == after
    records = records_of(broker, topic, read_at=ARRIVED)
    assert differences(root, derive(records, rules(gold=GOLD))) == {}
