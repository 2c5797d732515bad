"""Bronze keeps a record's bytes, key, headers, position and times unchanged."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.flow.sources.errors import SourceError
from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from headgate.setup.broker.running import Broker
from tests.oracle import derive
from tests.support.broker import Sent, create_topic, expire, produce
from tests.support.events import reading
from tests.support.kafka_engine import KafkaEngine, records_of
from tests.support.landing import ARRIVED
from tests.support.readings import NOON, declare_kafka, rules
from tests.support.rounds import IN_FULL
from tests.support.tables import differences, read

pytestmark = pytest.mark.spark

GOOD = reading("good", NOON, value=1)
ODD = (
    Sent(GOOD),
    Sent(GOOD, key=b""),
    Sent(GOOD, key=bytes(range(256))),
    Sent(None, key=b"tombstone"),
    Sent(None),
    Sent(b"", key=b"empty"),
    Sent(bytes(range(256)) * 40, key=b"binary"),
    Sent(b"\x00\x00\x00\x00\x07" + GOOD, key=b"framed by a schema registry"),
    Sent(reading("headed", NOON), headers=(("a", b"1"), ("a", None), ("", b""), ("ü", b"\xff"))),
    Sent(reading("huge", NOON), headers=tuple((f"h{k}", b"x" * 100_000) for k in range(5))),
    Sent(reading("long", NOON, site="x" * 500_000), key=b"k" * 50_000),
)
ANY_TIME = {"message_timestamp_after_max_ms": str((1 << 63) - 1)}


def test_keys_headers_and_bytes_are_kept(
    spark: SparkSession, tmp_path: Path, broker: Broker
) -> None:
    topic = create_topic(broker, 1)
    produce(broker, topic, [Sent(**vars(one) | {"at": ARRIVED}) for one in ODD])
    pipeline = declare_kafka(tmp_path, broker.servers, topic=topic, gold=("bands",))
    engine = KafkaEngine(spark, pipeline, tmp_path / "root", now=ARRIVED)
    engine.read_all()
    rows = sorted(read(engine.root, "bronze/raw"), key=lambda row: row["offset"])
    kept = [
        (
            row["value"],
            row["key"],
            tuple((h["key"], h["value"]) for h in row["headers"] or ()),
        )
        for row in rows
    ]
    assert kept == [(one.value, one.key, one.headers) for one in ODD]
    assert {row["topic"] for row in rows} == {topic}
    expected = derive(records_of(broker, topic, read_at=ARRIVED), rules(gold=("bands",)))
    assert differences(engine.root, expected) == {}
    quarantined = read(engine.root, "quarantine/raw")
    assert [row["value"] for row in sorted(quarantined, key=lambda r: r["offset"])] == [
        one.value for one in ODD[3:8]
    ]
    engine.close()


def test_tombstones_can_be_ignored(spark: SparkSession, tmp_path: Path, broker: Broker) -> None:
    """They are in bronze, and each is accounted for as filtered, in a table with a `where` as in
    one without."""
    topic = create_topic(broker, 1)
    records = [Sent(GOOD), Sent(None, key=b"a"), Sent(b""), Sent(None), Sent(reading("low", NOON))]
    produce(broker, topic, [Sent(**vars(one) | {"at": ARRIVED}) for one in records])
    pipeline = declare_kafka(
        tmp_path, broker.servers, topic=topic, tombstones="ignore", gold=("sliding", "bands")
    )
    engine = KafkaEngine(spark, pipeline, tmp_path / "root", now=ARRIVED)
    engine.read_all()
    engine.close()
    ignoring = replace(rules(gold=("sliding", "bands")), ignores_tombstones=True)
    expected = derive(records_of(broker, topic, read_at=ARRIVED), ignoring)
    assert differences(engine.root, expected) == {}
    assert [row["reason"] for row in read(engine.root, "quarantine/raw")] == ["unparsable"]
    assert [row["reason"] for row in read(engine.root, "bronze/raw")].count("ignored") == 2
    found = {each.table: each for each in balance(engine.layout, engine.pipeline).silver}
    clean, strong = found["clean"], found["strong"]
    assert (clean.quarantined, clean.silver, clean.filtered) == (1, 2, 2)
    assert (strong.quarantined, strong.silver, strong.filtered) == (1, 0, 4)
    assert balance(engine.layout, engine.pipeline).differences == ()
    assert by_id(engine.layout, engine.pipeline).findings == ()


def test_when_a_record_was_seen(spark: SparkSession, tmp_path: Path, broker: Broker) -> None:
    """``seen_at`` is the producer's time if that is past when the record is read, else the time of
    reading: a producer's clock that is ahead must not let events of the future in."""
    read_at = ARRIVED + timedelta(minutes=1)
    known = {
        "past": ARRIVED,
        "ahead": read_at + timedelta(minutes=30),
        "far ahead": datetime(2200, 1, 1, tzinfo=UTC),
        "long ago": datetime(1970, 1, 2, tzinfo=UTC),
    }
    topic = create_topic(broker, 1, **ANY_TIME)
    produce(
        broker,
        topic,
        [Sent(reading(name, read_at + timedelta(minutes=45)), at=at) for name, at in known.items()],
    )
    pipeline = declare_kafka(tmp_path, broker.servers, topic=topic, gold=("bands",))
    engine = KafkaEngine(spark, pipeline, tmp_path / "root", now=read_at)
    engine.read_all()
    seen = {row["event_id"]: row for row in read(engine.root, "bronze/raw")}
    first_read = min(row["seen_at"] for row in seen.values() if row["event_id"] == "far ahead")
    assert read_at <= first_read < read_at + timedelta(seconds=1)
    assert {name: row["ingested_at"] for name, row in seen.items()} == known
    for name, at in known.items():
        assert seen[name]["seen_at"] == min(at, first_read)
    # An event up to an hour after ``seen_at`` is not future; half a century after it is future.
    assert {name for name, row in seen.items() if row["reason"] == "future"} == {"long ago"}
    expected = derive(records_of(broker, topic, read_at=first_read), rules(gold=("bands",)))
    assert differences(engine.root, expected) == {}
    engine.close()


def test_the_brokers_clock_counts_as_it_is(
    spark: SparkSession, tmp_path: Path, broker: Broker
) -> None:
    topic = create_topic(broker, 1, message_timestamp_type="LogAppendTime")
    produce(broker, topic, [Sent(GOOD, at=datetime(1999, 1, 1, tzinfo=UTC))])
    pipeline = declare_kafka(tmp_path, broker.servers, topic=topic, gold=("bands",))
    engine = KafkaEngine(spark, pipeline, tmp_path / "root", now=datetime(2001, 1, 1, tzinfo=UTC))
    engine.read_all()
    row = read(engine.root, "bronze/raw")[0]
    assert row["ingested_at"] == row["seen_at"] == records_of(broker, topic)[0].ingested_at
    assert row["seen_at"].year > 2001
    engine.close()


def test_a_topic_of_many_partitions(spark: SparkSession, tmp_path: Path, broker: Broker) -> None:
    """Most of the partitions are empty: they hold back the watermark until they are idle."""
    many = 100 if IN_FULL else 30
    topic = create_topic(broker, many)
    records = [
        Sent(reading(f"r{k}", NOON + timedelta(seconds=k), value=1), partition=k % 12, at=ARRIVED)
        for k in range(400)
    ]
    produce(broker, topic, records)
    pipeline = declare_kafka(
        tmp_path, broker.servers, topic=topic, max_per_batch=150, gold=("bands",)
    )
    engine = KafkaEngine(spark, pipeline, tmp_path / "root", now=ARRIVED)
    engine.read_all(catch_up_every=5)
    found = records_of(broker, topic, read_at=ARRIVED)
    expected = derive(found, rules(gold=("bands",)), partitions=range(many))
    assert expected.clock is None
    assert differences(engine.root, expected) == {}
    engine.close()


def test_times_that_no_calendar_has(spark: SparkSession, tmp_path: Path, broker: Broker) -> None:
    """A timestamp in microseconds instead of milliseconds gives no ingestion time, nor does one
    before 1970: -1 is Kafka's word for none. One in nanoseconds cannot be read."""
    topic = create_topic(broker, 2, **ANY_TIME)
    micros, nanos = 1_760_000_000_000_000, 1_760_000_000_000_000_000
    for partition, id_, timestamp in (
        (0, "micros", micros),
        (0, "none", -1),
        (0, "negative", -5),
        (1, "before", 1),
        (1, "nanos", nanos),
        (1, "behind", 1),
    ):
        produce(broker, topic, [Sent(reading(id_, NOON), partition=partition, at=timestamp)])
    pipeline = declare_kafka(tmp_path, broker.servers, topic=topic, gold=("bands",))
    engine = KafkaEngine(spark, pipeline, tmp_path / "root", now=ARRIVED)
    assert engine.list_new()
    engine.ingest()
    rows = {row["event_id"]: row for row in read(engine.root, "bronze/raw")}
    assert rows.keys() == {"micros", "none", "negative", "before"}
    assert rows["before"]["ingested_at"] == datetime(1970, 1, 1, 0, 0, 0, 1_000, tzinfo=UTC)
    for id_ in ("micros", "none", "negative"):
        assert rows[id_]["ingested_at"] is None
        assert rows[id_]["reason"] is None
        assert ARRIVED <= rows[id_]["seen_at"] < ARRIVED + timedelta(seconds=1)
    assert engine.list_new()
    with pytest.raises(SourceError, match=f"{topic}/1: the record at offset 1 has a timestamp"):
        engine.ingest()
    expire(broker, topic, {1: 2})
    engine.close()
    engine.accept_gap = True
    engine.start().read_all()
    rows = {row["event_id"]: row for row in read(engine.root, "bronze/raw")}
    assert rows.keys() == {"micros", "none", "negative", "before", "behind"}
    engine.close()
