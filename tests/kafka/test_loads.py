"""Records that a topic had before a pipeline began are loaded beside its stream."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.flow.sources.errors import SourceError
from headgate.history.loads import requests
from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from headgate.setup.broker.running import Broker
from tests.oracle import Arrival, OtherDecision, Replay, derive
from tests.oracle.rules import Happening
from tests.support.broker import Sent, create_topic, expire, place_of, produce
from tests.support.events import readings
from tests.support.kafka_engine import KafkaEngine, records_of
from tests.support.loads import wishes
from tests.support.readings import declare_kafka, rules
from tests.support.tables import differences

pytestmark = pytest.mark.spark

PARTITIONS = 2
GOLD = ("bands",)


def sent(values: list[bytes]) -> list[Sent]:
    places = (place_of(value, PARTITIONS) for value in values)
    return [
        Sent(value, key=id_, partition=at) for value, (id_, at) in zip(values, places, strict=True)
    ]


def test_what_a_topic_had_before_is_loaded(
    spark: SparkSession, tmp_path: Path, broker: Broker
) -> None:
    """Reading begins at offsets in the middle of the topic, and goes on after the load."""
    values = [value.replace(b"2026-", b"2021-") for value in readings(400, seed=5)]
    topic = create_topic(broker, PARTITIONS, message_timestamp_type="LogAppendTime")
    produce(broker, topic, sent(values[:200]))
    old = records_of(broker, topic)
    begins = {p: sum(record.partition == p for record in old) for p in range(PARTITIONS)}
    produce(broker, topic, sent(values[150:300]))
    pipeline = declare_kafka(
        *(tmp_path, broker.servers),
        topic=topic,
        max_per_batch=1_000,
        gold=GOLD,
        start=str(begins),
    )
    engine = KafkaEngine(spark, pipeline, tmp_path / "root")
    engine.read_all()
    for wrong, said in (
        ("nothing", "does not read nothing"),
        (f"{topic}/7", f"does not read {topic}/7"),
        (f"{topic}/0:0-9999999", "has the offsets"),
        ("a/b/c", "is not a range"),
    ):
        with pytest.raises(SourceError, match=said):
            engine.begin_load(wrong)
    request = engine.begin_load(topic)
    assert request.total == len(old)
    engine.load()
    assert [*wishes(engine.layout, engine.pipeline.name).values()] == ["done"]
    read = [r for r in records_of(broker, topic) if r.offset >= begins[r.partition]]
    after = {p: max(r.offset for r in read if r.partition == p) for p in range(PARTITIONS)}
    produce(broker, topic, sent(values[300:]))
    engine.read_all()
    engine.close()
    assert balance(engine.layout, engine.pipeline).differences == ()
    assert by_id(engine.layout, engine.pipeline).findings == ()
    live = [r for r in records_of(broker, topic) if r.offset >= begins[r.partition]]
    came = [replace(r, offset=r.offset - (1 << 56), arrival=Arrival(1, after)) for r in old]
    drains: list[Happening] = [OtherDecision(), *(Replay(after, name, load=1) for name in GOLD)]
    expected = derive([*live, *came], rules(gold=GOLD), drains=drains)
    assert differences(engine.root, expected) == {}


def test_a_load_whose_records_expired_stops_and_names_them(
    spark: SparkSession, tmp_path: Path, broker: Broker
) -> None:
    topic = create_topic(broker, 1)
    produce(broker, topic, [Sent(value) for value in readings(20, seed=5)])
    pipeline = declare_kafka(tmp_path, broker.servers, topic=topic, gold=GOLD, start="latest")
    engine = KafkaEngine(spark, pipeline, tmp_path / "root")
    request = engine.begin_load(topic)
    expire(broker, topic, {0: 7})
    engine.load()
    engine.close()
    (stopped,) = requests.all_loads(engine.layout, engine.pipeline.name)
    assert stopped.wish == "stopped"
    assert f"{topic}/0: offsets 0 to 6 have expired" in stopped.why
    assert stopped.why.endswith(f"load what is left: --kafka {topic}/0:7-{request.total}")
