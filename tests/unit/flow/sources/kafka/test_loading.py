"""Ranges of topics that a person names, and how a load reads them from fake brokers."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from py4j.protocol import Py4JError

from headgate.driver.source_loop import READ_ATTEMPTS, SourceLoop
from headgate.flow.sources.errors import SourceError
from headgate.flow.sources.kafka import batches
from headgate.flow.sources.kafka.failures import OffsetsLostError
from headgate.flow.sources.kafka.loading import KafkaLoad, NamedRange, require_once
from headgate.flow.sources.kafka.topics import TopicPartition
from headgate.flow.sources.loading import LoadPlan
from headgate.flow.sources.micro_batches import SourceContext
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import State
from tests.support.brokers import Brokers, Bronze, Reading
from tests.support.declared import source_of
from tests.support.readings import declare_kafka

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("orders", NamedRange("orders")),
        ("a.b-c_d/3", NamedRange("a.b-c_d", 3)),
        ("orders/0:17-4711", NamedRange("orders", 0, 17, 4711)),
    ],
)
def test_what_is_named(text: str, named: NamedRange) -> None:
    assert NamedRange.parse(text) == named


@pytest.mark.parametrize(
    "text", ["", "orders/", "orders/x", "orders:1-2", "a/b/c", "o/1:2", "o/1:2-"]
)
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(SourceError, match="is not a range of a topic"):
        NamedRange.parse(text)


def test_a_topic_has_its_partitions() -> None:
    first, second = (TopicPartition("orders", number, number) for number in (0, 1))
    assert NamedRange("orders").has(first)
    assert NamedRange("orders", 1).has(second)
    assert not NamedRange("orders", 1).has(first)
    assert not NamedRange("other").has(first)


@pytest.mark.parametrize("text", ["orders/0:5-5", "orders/0:1000-0"])
def test_a_range_without_records(text: str) -> None:
    with pytest.raises(SourceError, match="has no records: it ends before"):
        NamedRange.parse(text)


def test_a_partition_has_one_range() -> None:
    require_once(
        [NamedRange("orders"), NamedRange("orders", 0, 0, 10), NamedRange("orders", 1, 0, 10)]
    )
    with pytest.raises(SourceError, match="orders/0 is named with 2 ranges"):
        require_once([NamedRange("orders", 0, 0, 10), NamedRange("orders", 0, 20, 30)])


@dataclass
class Poisoned(Reading):
    """The record at the offset ``poison`` of the partition 0 has an impossible timestamp."""

    poison: int = 1 << 62
    failures: list[int] = field(default_factory=list)

    def read(self, *given: Any) -> Reading:
        _, position, reached, *_ = given
        if position[0] <= self.poison < reached[0]:
            self.failures.append(reached[0])
            text = f"Record at topic a partition 0 offset {self.poison} has timestamp value 1E18"
            raise Py4JError(text)
        return super().read(*given)


@dataclass
class Place:
    """A load of the records before the offsets 10 and 4 of a topic's two partitions."""

    folder: Path
    brokers: Brokers = field(default_factory=Brokers)
    reading: Poisoned = field(default_factory=Poisoned)
    bronze: Bronze = field(default_factory=Bronze)

    def load(self) -> SourceLoop:
        pipeline = declare_kafka(self.folder, "localhost:1", topic="a")
        context = SourceContext(
            *(cast(Any, None), pipeline.name, pipeline.file, source_of(pipeline)),
            tables={},
            epoch=1,
            clock=lambda: NOON,
        )
        ends = {"0": 10, "1": 4}
        plan = LoadPlan({"0": 0, "1": 0}, ends, "14 records of a", "records", {"topics": ["a@id0"]})
        loop = SourceLoop(
            *("orders", lambda at: KafkaLoad(context, at, plan), self.bronze), lambda: NOON
        )
        loop.begin()
        return loop


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    place = Place(tmp_path)
    place.brokers.make("a", 100, 100)
    payload = BronzePayload(offsets={"0": 0, "1": 0}, topics=("a@id0",))
    place.bronze.state = State(payload)
    monkeypatch.setattr(batches, "Cluster", lambda *_: place.brokers)
    monkeypatch.setattr(batches, "KafkaReader", lambda *_: place.reading)
    return place


def test_a_load_reads_its_ranges(place: Place) -> None:
    load = place.load()
    assert load.ingest()
    assert place.bronze.offsets == {"0": 10, "1": 4}
    assert not load.ingest()
    assert load.has_ingested_all()


def test_records_before_one_that_cannot_be_read_are_read_first(place: Place) -> None:
    place.reading.poison = 7
    load = place.load()
    assert load.ingest()
    assert place.bronze.offsets == {"0": 7, "1": 4}
    assert place.reading.failures == [10], "it is not tried again"
    with pytest.raises(SourceError, match="a/0: the record at offset 7 has a timestamp") as error:
        load.ingest()
    assert "name their offsets" in error.value.remedy


def test_a_read_that_fails_is_tried_again_and_not_for_ever(place: Place) -> None:
    load, failures = place.load(), list[int]()

    def fail() -> None:
        failures.append(1)
        place.reading.meanwhile = fail
        raise Py4JError("no reason")

    place.reading.meanwhile = fail
    with pytest.raises(Py4JError):
        load.ingest()
    assert len(failures) == READ_ATTEMPTS


def test_records_that_expired_before_they_were_loaded_are_named(place: Place) -> None:
    load = place.load()

    def expire(first: int, second: int) -> None:
        place.brokers.logs["a"][0].first, place.brokers.logs["a"][1].first = first, second
        raise Py4JError("offset out of range")

    place.reading.meanwhile = lambda: expire(7, 0)
    with pytest.raises(OffsetsLostError) as partly:
        load.ingest()
    said = partly.value.message
    assert "a/0: offsets 0 to 6 have expired, and the first one that is left is 7" in said
    assert "a/1: offsets" not in said
    assert said.endswith("load what is left: --kafka a/0:7-10 --kafka a/1:0-4")
    assert "load PIPELINE --cancel" in partly.value.remedy
    place.reading.meanwhile = lambda: expire(0, 50)
    with pytest.raises(OffsetsLostError, match=r"a/1: offsets 0 to 3 .* --kafka a/0:0-10\n"):
        load.ingest()


def test_records_that_expire_once_they_were_read_are_loaded(place: Place) -> None:
    load = place.load()

    def expire() -> None:
        place.brokers.logs["a"][0].first = 10

    place.reading.meanwhile = expire
    assert load.ingest()
    assert place.bronze.offsets == {"0": 10, "1": 4}


def test_a_topic_made_anew_shows_when_the_last_attempt_fails(place: Place) -> None:
    load, failures = place.load(), list[int]()

    def fail() -> None:
        failures.append(1)
        place.reading.meanwhile = fail
        if len(failures) == READ_ATTEMPTS:
            place.brokers.make("a", 100, 100)
        raise Py4JError("no reason")

    place.reading.meanwhile = fail
    with pytest.raises(OffsetsLostError, match="deleted or recreated"):
        load.ingest()
    assert len(failures) == READ_ATTEMPTS


def test_a_range_that_bronze_has_committed_is_not_committed_again(place: Place) -> None:
    load = place.load()

    def fail() -> None:
        raise Py4JError("after the commit")

    place.bronze.then = fail
    with pytest.raises(Py4JError, match="after the commit"):
        load.ingest()
    assert [c.offsets for c in place.bronze.commits] == [{"0": 10, "1": 4}]


def test_a_load_that_cannot_begin_closes_its_client(place: Place) -> None:
    place.brokers.make("a", 100, 100)
    with pytest.raises(OffsetsLostError, match="deleted or recreated"):
        place.load()
    assert place.brokers.closed
