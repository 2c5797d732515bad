"""Savepoints of a pipeline that reads topics: bronze keeps records that the topic has deleted."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.cli.main import answer
from headgate.flow.sources.kafka.losses import gone_offsets
from headgate.history.savepoints.clone import clone_savepoint
from headgate.history.savepoints.savepoint import Savepoint
from headgate.insight.ledger.by_id import by_id
from headgate.lake.storage.layout import Layout
from headgate.setup.broker.running import Broker
from tests.oracle import derive
from tests.support.broker import Sent, create_topic, expire, place_of, produce
from tests.support.declared import kafka_of
from tests.support.events import readings
from tests.support.kafka_engine import KafkaEngine, records_of
from tests.support.landing import ARRIVED
from tests.support.readings import declare_kafka, rules
from tests.support.tables import differences, state

pytestmark = pytest.mark.spark

GOLD = ("bands",)
PARTITIONS = 3


def send(broker: Broker, topic: str, values: list[bytes]) -> None:
    records = []
    for value in values:
        key, partition = place_of(value, PARTITIONS)
        records.append(Sent(value, key, partition, at=ARRIVED))
    produce(broker, topic, records)


def gone(engine: KafkaEngine, savepoint: Savepoint) -> str | None:
    """What the topic no longer has, found as by ``savepoint verify --reread``, without a new
    JVM."""
    source = kafka_of(engine.pipeline)
    (saved,) = savepoint.sources.values()
    return gone_offsets(source, saved.offsets, saved.topics, lambda: nullcontext(engine.spark))


def verify_source(engine: KafkaEngine, patched: pytest.MonkeyPatch) -> int:
    """Run the command in the present session: a JVM of its own takes seconds."""

    def session(
        name: str, cores: int, jars: Sequence[Path]
    ) -> AbstractContextManager[SparkSession]:
        assert any("kafka" in jar.name for jar in jars)
        return nullcontext(engine.spark)

    patched.setattr("headgate.driver.session.passing_session", session)
    place = [str(engine.pipeline.file), "latest", "--reread", "--root", str(engine.root)]
    return answer(["savepoint", "verify", *place])


def test_back_and_on_while_the_topic_forgets(
    spark: SparkSession,
    tmp_path: Path,
    broker: Broker,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic = create_topic(broker, PARTITIONS)
    values = readings(200, seed=31)
    pipeline = declare_kafka(tmp_path, broker.servers, topic=topic, gold=GOLD, max_per_batch=60)
    engine = KafkaEngine(spark, pipeline, tmp_path / "root", now=ARRIVED)
    send(broker, topic, values[:60])
    engine.read_all()
    savepoint = engine.savepoint()
    send(broker, topic, values[60:160])
    engine.read_all()
    # The topic still has every record: bronze goes back, and the topic is read again.
    assert gone(engine, savepoint) is None
    engine.restore(savepoint, reread=True)
    engine.start()
    engine.read_all(catch_up_every=2)
    expected = derive(records_of(broker, topic), rules(gold=GOLD))
    assert differences(engine.root, expected) == {}
    # Now the topic has deleted these records, but bronze still has them.
    records = records_of(broker, topic)
    ends = state(engine.root, "bronze/raw")["offsets"]
    expire(broker, topic, {int(number): end for number, end in ends.items()})
    assert gone(engine, savepoint)
    assert verify_source(engine, monkeypatch) == 5
    assert "expired: the topic kept them no longer" in capsys.readouterr().err
    engine.restore(savepoint)
    engine.start()
    engine.catch_up()
    assert differences(engine.root, derive(records, rules(gold=GOLD))) == {}
    assert by_id(engine.layout, pipeline).holds
    # A copy continues on its own, from the offsets that it holds.
    later = engine.savepoint()
    send(broker, topic, values[160:])
    clone_savepoint(engine.layout, later, Layout.of(str(tmp_path / "copy"), pipeline.name))
    copy = KafkaEngine(spark, pipeline, tmp_path / "copy", now=ARRIVED)
    engine.read_all()
    copy.read_all()
    expected = derive([*records, *records_of(broker, topic)], rules(gold=GOLD))
    for root in (engine.root, copy.root):
        assert differences(root, expected) == {}
    for each in (engine, copy):
        each.close()
