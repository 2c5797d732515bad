"""If a topic loses records before they are read, the driver fails with an error that names them and
commits nothing. A person may then accept the gap."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from headgate.flow.sources.kafka.batches import KafkaReader
from headgate.flow.sources.kafka.failures import OffsetsLostError, TopicMissingError
from headgate.insight.ledger.by_id import by_id
from headgate.setup.broker import running
from headgate.setup.broker.running import Broker
from tests.oracle import derive
from tests.support.broker import Sent, create_topic, expire, make_anew, produce
from tests.support.events import reading
from tests.support.kafka_engine import KafkaEngine, records_of
from tests.support.landing import ARRIVED
from tests.support.own_broker import restart
from tests.support.readings import NOON, declare_kafka, rules
from tests.support.rounds import in_full
from tests.support.tables import differences, read, state

pytestmark = pytest.mark.spark

GOLD = ("bands",)


def send(broker: Broker, topic: str, name: str, count: int, partitions: int = 1) -> None:
    records = [
        Sent(
            reading(f"{name}-{p}-{k}", NOON + timedelta(seconds=k), value=1, level=3),
            partition=p,
            at=ARRIVED,
        )
        for k in range(count)
        for p in range(partitions)
    ]
    produce(broker, topic, records)


@dataclass
class Reader:
    """A pipeline over a topic of two partitions. It has read ten records of each."""

    spark: SparkSession
    folder: Path
    broker: Broker
    topic: str

    def __post_init__(self) -> None:
        send(self.broker, self.topic, "first", 10, 2)
        pipeline = declare_kafka(self.folder, self.broker.servers, topic=self.topic, gold=GOLD)
        self.engine = KafkaEngine(self.spark, pipeline, self.folder / "root", now=ARRIVED)
        self.engine.read_all()

    def versions(self) -> dict[str, int]:
        logs = self.engine.root.rglob("_delta_log")
        return {str(log.parent): DeltaTable(str(log.parent)).version() for log in logs}

    def go_on(self) -> None:
        """Do what the stream does: list, read, commit. It has to fail, and nothing is committed."""
        before = self.versions()
        with pytest.raises(OffsetsLostError) as error:
            self.engine.read_all()
        assert self.versions() == before
        self.told = str(error.value)

    def start_fails(self) -> None:
        bronze = state(self.engine.root, "bronze/raw")
        with pytest.raises(OffsetsLostError) as error:
            self.engine.start()
        now = state(self.engine.root, "bronze/raw")
        assert (now["n"], now["offsets"]) == (bronze["n"], bronze["offsets"])
        self.told = str(error.value)

    def accept(self) -> list[dict[str, object]]:
        """Continue after the gap, check the ledger, and return the gaps that bronze has
        recorded."""
        self.engine.accept_gap = True
        self.engine.start().read_all()
        self.engine.close()
        proof = by_id(self.engine.layout, self.engine.pipeline)
        assert (proof.findings, proof.rows) == ((), len(self.offsets()))
        gaps: list[dict[str, object]] = state(self.engine.root, "bronze/raw")["gaps"]
        return gaps

    def offsets(self) -> set[tuple[int, int]]:
        rows = read(self.engine.root, "bronze/raw")
        return {(row["partition"], row["offset"]) for row in rows}


@pytest.fixture
def reader(spark: SparkSession, tmp_path: Path, broker: Broker) -> Reader:
    return Reader(spark, tmp_path, broker, create_topic(broker, 2))


def both(start: int, end: int, base: int = 0) -> set[tuple[int, int]]:
    return {(base + p, offset) for p in range(2) for offset in range(start, end)}


def test_records_that_expired_unread(reader: Reader) -> None:
    send(reader.broker, reader.topic, "second", 20, 2)
    assert reader.engine.list_new()
    expire(reader.broker, reader.topic, {0: 17, 1: 10})
    reader.go_on()
    assert f"{reader.topic}/0: offsets 10 to 16 (expired" in reader.told
    assert f"{reader.topic}/1" not in reader.told
    reader.start_fails()
    assert f"{reader.topic}/0: offsets 10 to 16 (expired" in reader.told
    assert "--accept-gap" in reader.told
    gap = {"topic": reader.topic, "partition": 0, "first": 10, "end": 17}
    (found,) = reader.accept()
    assert gap.items() <= found.items()
    assert reader.offsets() == both(0, 30) - {(0, offset) for offset in range(10, 17)}
    rows = records_of(reader.broker, reader.topic, read_at=ARRIVED)
    assert {(r.partition, r.offset) for r in rows} <= reader.offsets()


def test_everything_unread_expired(reader: Reader) -> None:
    send(reader.broker, reader.topic, "second", 5, 2)
    assert reader.engine.list_new()
    expire(reader.broker, reader.topic, {0: 15, 1: 15})
    reader.go_on()
    assert f"{reader.topic}/0: offsets 10 to 14" in reader.told
    assert f"{reader.topic}/1: offsets 10 to 14" in reader.told
    assert len(reader.accept()) == 2
    assert reader.offsets() == both(0, 10)


def test_what_was_read_may_expire(reader: Reader) -> None:
    expire(reader.broker, reader.topic, {0: 10, 1: 7})
    send(reader.broker, reader.topic, "second", 5, 2)
    reader.engine.start().read_all()
    assert reader.offsets() == both(0, 15)
    reader.engine.close()


def test_a_topic_that_was_removed(reader: Reader) -> None:
    from headgate.setup.broker import topics

    send(reader.broker, reader.topic, "second", 5, 2)
    topics.delete(reader.broker.servers, reader.topic)
    reader.go_on()
    assert f"{reader.topic}/0: offsets 10 to the end (the topic is gone)" in reader.told
    reader.start_fails()
    assert f"{reader.topic}/1: offsets 10 to the end (the topic is gone)" in reader.told
    reader.engine.accept_gap = True
    with pytest.raises(TopicMissingError, match=reader.topic):
        reader.engine.start()
    topics.create(reader.broker.servers, reader.topic, 2)
    send(reader.broker, reader.topic, "third", 3, 2)
    assert [gap["reason"] for gap in reader.accept()] == ["the topic was created again"] * 2
    assert reader.offsets() == both(0, 10) | both(0, 3, base=1 << 16)


@pytest.mark.parametrize("regrown", [3, 30], ids=["shorter", "longer than before"])
def test_a_topic_that_was_made_anew(reader: Reader, regrown: int) -> None:
    make_anew(reader.broker, reader.topic, 2)
    send(reader.broker, reader.topic, "anew", regrown, 2)
    reader.go_on()
    assert f"{reader.topic}/0: offsets 10 to the end (the topic was created again)" in reader.told
    reader.start_fails()
    assert len(reader.accept()) == 2
    assert reader.offsets() == both(0, 10) | both(0, regrown, base=1 << 16)
    found = records_of(reader.broker, reader.topic, base=1 << 16, read_at=ARRIVED)
    kept = {
        (r["partition"], r["offset"]): r["value"] for r in read(reader.engine.root, "bronze/raw")
    }
    assert all(kept[r.partition, r.offset] == r.value for r in found)


def test_a_topic_that_is_made_anew_before_it_is_read(
    reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The topic is created again between the listing and the read, with as many records as before,
    so the read itself succeeds."""
    send(reader.broker, reader.topic, "second", 10, 2)
    assert reader.engine.list_new()
    read_range = KafkaReader.read

    def read_later(*arguments: object) -> object:
        make_anew(reader.broker, reader.topic, 2)
        send(reader.broker, reader.topic, "anew", 20, 2)
        return read_range(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(KafkaReader, "read", read_later)
    before = reader.versions()
    with pytest.raises(OffsetsLostError, match="the topic was created again"):
        reader.engine.ingest()
    assert reader.versions() == before
    monkeypatch.undo()
    reader.accept()
    assert reader.offsets() == both(0, 10) | both(0, 20, base=1 << 16)


@in_full
def test_a_log_that_was_cut_off(spark: SparkSession, tmp_path: Path) -> None:
    """As after an unclean leader election: the topic is the same, and its next records get the old
    offsets. In short runs, tests/unit/flow/sources/kafka/test_losses.py does the same with the
    offsets that a broker reports in this case."""
    with running.start(tmp_path / "kafka") as broker:
        reader = Reader(spark, tmp_path, broker, create_topic(broker, 2))
        broker.stop()
        partition = broker.folder / "data" / f"{reader.topic}-0"
        for file in partition.glob("0*"):
            file.unlink()
        restart(broker)
        send(broker, reader.topic, "again", 4)
        reader.start_fails()
        assert f"{reader.topic}/0: offsets 4 to 9 (the log ends before" in reader.told
        reader.engine.accept_gap = True
        reader.start_fails()
        assert "--root" in reader.told
        shutil.rmtree(reader.engine.root)
        fresh = KafkaEngine(spark, reader.engine.pipeline, reader.engine.root, now=ARRIVED)
        fresh.read_all()
        found = records_of(broker, reader.topic, read_at=ARRIVED)
        assert differences(fresh.root, derive(found, rules(gold=GOLD))) == {}
        fresh.close()
