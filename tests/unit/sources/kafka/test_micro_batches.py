"""Micro-batches of Kafka, from fake brokers with offsets only: listed, decided, committed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Unpack, cast

import pytest
from py4j.protocol import Py4JError

from headgate.declaration.model import Pipeline
from headgate.jobs.errors import StopRequested
from headgate.sources.errors import SourceError
from headgate.sources.kafka import batches
from headgate.sources.kafka.errors import (
    BrokersUnreachableError,
    OffsetsLostError,
    UnknownTopicError,
)
from headgate.sources.kafka.micro_batches import KafkaMicroBatches
from headgate.sources.micro_batches import SourceContext
from tests.support.brokers import Brokers, Bronze, Reading
from tests.support.declared import source_of
from tests.support.readings import KafkaKeys, declare_kafka

A_MINUTE: KafkaKeys = {"unreachable_after": "1 minute"}


@dataclass
class Place:
    """One pipeline, its brokers and its bronze; ``start`` is a new driver."""

    folder: Path
    brokers: Brokers = field(default_factory=Brokers)
    reading: Reading = field(default_factory=Reading)
    bronze: Bronze = field(default_factory=Bronze)
    now: float = 0.0
    thread: threading.Thread = field(default_factory=threading.current_thread)
    check: Callable[[], None] = lambda: None

    def declare(self, **keys: Unpack[KafkaKeys]) -> Pipeline:
        if "topic" not in keys and "pattern" not in keys:
            keys["pattern"] = '".*"'
        return declare_kafka(self.folder, "localhost:1", **keys)

    def start(self, *, accept_gap: bool = False, **keys: Unpack[KafkaKeys]) -> KafkaMicroBatches:
        pipeline, fakes = self.declare(**keys), cast(Any, self.bronze)
        context = SourceContext(
            *(cast(Any, None), pipeline.name, pipeline.file, source_of(pipeline), fakes),
            tables={},
            waits=lambda _: self.check(),
            clock=lambda: datetime(2026, 3, 1, tzinfo=UTC),
            monotonic=lambda: self.now,
            accept_gap=accept_gap,
        )
        return KafkaMicroBatches(context)

    def sleep(self, seconds: float) -> None:
        """Moves the clock for the test's own thread; threads that other tests left really sleep."""
        if threading.current_thread() is self.thread:
            self.now += seconds
        else:
            _SLEEP(seconds)


_SLEEP = time.sleep


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    place = Place(tmp_path)
    monkeypatch.setattr(batches, "Cluster", lambda *_: place.brokers)
    monkeypatch.setattr(batches, "KafkaReader", lambda *_: place.reading)
    monkeypatch.setattr(time, "sleep", place.sleep)
    return place


def read_all(source: KafkaMicroBatches) -> None:
    while source.pending():
        assert source.ingest()


def test_the_start_is_committed_before_anything_is_read(place: Place) -> None:
    place.brokers.make("a", 7, 9)
    source = place.start(start="latest")
    assert [c.offsets for c in place.bronze.commits] == [{"0": 7, "1": 9}]
    place.brokers.logs["a"][0].end = 10
    again = place.start(start="latest")
    assert len(place.bronze.commits) == 1
    assert again.pending() == 1
    assert source.pending() == 0


def test_an_end_that_moved_while_it_was_listed_is_no_harm(place: Place) -> None:
    """``latest`` is requested after the listing, and may be higher."""
    place.brokers.make("a", 7)
    offsets, asked = place.brokers.offsets, []

    def growing(partitions: Any, at: Any) -> Any:
        asked.append(at)
        if len(asked) == 3:
            place.brokers.logs["a"][0].end = 8
        return offsets(partitions, at)

    place.brokers.offsets = growing  # type: ignore[method-assign]
    source = place.start(start="latest")
    assert place.bronze.payload.offsets == {"0": 8}
    assert not source.ingest()


@pytest.mark.parametrize(
    ("start", "told"),
    [
        ("{0: 8}", "a/0 has no offset 8; it has 2 to 7"),
        ("{0: 1}", "a/0 has no offset 1; it has 2 to 7"),
        ("{4: 0}", "no partition 4; the topic has 2"),
    ],
)
def test_a_start_that_is_not_there(place: Place, start: str, told: str) -> None:
    place.brokers.make("a", 7, 9)
    place.brokers.logs["a"][0].first = 2
    with pytest.raises(SourceError, match=told):
        place.start(topic="a", start=start)
    assert place.bronze.commits == []
    assert place.brokers.closed


def test_a_topic_that_vanished_is_in_no_commit_forgotten(place: Place) -> None:
    """The listing without it reaches the stream's thread only through an error."""
    place.brokers.make("a", 5)
    place.brokers.make("b", 5)
    source = place.start(max_per_batch=2)
    assert source.ingest()
    place.brokers.remove("a")
    with pytest.raises(OffsetsLostError, match=r"a/0: offsets 1 to the end \(the topic is gone\)"):
        source.poll(final=False)
    with pytest.raises(OffsetsLostError):
        source.ingest()
    assert all(set(c.offsets) == {"0", str(1 << 16)} for c in place.bronze.commits)
    with pytest.raises(OffsetsLostError, match="a/0"):
        place.start()


def test_topics_keep_the_places_they_were_given(place: Place) -> None:
    """A topic appears. While its first batch is read, another one appears that sorts before it."""
    place.brokers.make("b", 5)
    source = place.start()
    read_all(source)
    place.brokers.make("z", 3)
    source.poll(final=False)

    def meanwhile() -> None:
        place.brokers.make("m", 4)
        source.poll(final=False)

    place.reading.meanwhile = meanwhile
    read_all(source)
    names = [tuple(label.partition("@")[0] for label in c.topics) for c in place.bronze.commits]
    assert names[-1] == ("b", "z", "m")
    assert all(names[-1][: len(name)] == name for name in names)
    assert place.bronze.payload.offsets == {"0": 5, str(1 << 16): 3, str(2 << 16): 4}


def test_a_topic_made_anew_while_it_is_read_is_not_committed(place: Place) -> None:
    place.brokers.make("a", 5)
    source = place.start()
    place.reading.meanwhile = lambda: place.brokers.make("a", 900)
    with pytest.raises(OffsetsLostError, match=r"a/0: offsets 0 to the end \(.* created again\)"):
        source.ingest()
    assert len(place.bronze.commits) == 1


def test_a_new_topic_made_anew_in_its_first_batch_is_not_committed(place: Place) -> None:
    """Bronze has no position in it yet that could show the loss."""
    place.brokers.make("a", 5)
    source = place.start()
    read_all(source)
    place.brokers.make("b", 5)
    source.poll(final=False)
    place.reading.meanwhile = lambda: place.brokers.make("b", 900)
    with pytest.raises(OffsetsLostError, match="b: the topic was created again while its first"):
        source.ingest()
    assert str(1 << 16) not in place.bronze.payload.offsets


def test_a_topic_removed_while_it_is_read_is_not_committed(place: Place) -> None:
    place.brokers.make("a", 5)
    source = place.start(topic="a")
    place.reading.meanwhile = lambda: place.brokers.remove("a")
    with pytest.raises(OffsetsLostError, match="the topic is gone"):
        source.ingest()
    assert len(place.bronze.commits) == 1


def test_a_gap_is_accepted_at_the_start_and_said(place: Place) -> None:
    place.brokers.make("a", 5, 5)
    read_all(place.start())
    place.brokers.logs["a"] = [type(log)(9, 7) for log in place.brokers.logs["a"]]
    with pytest.raises(OffsetsLostError) as error:
        place.start()
    assert "a/0: offsets 5 to 6" in str(error.value)
    assert "a/1: offsets 5 to 6" in str(error.value)
    assert "headgate run PIPELINE --accept-gap" in error.value.remedy
    source = place.start(accept_gap=True)
    assert place.bronze.commits[-1].offsets == {"0": 7, "1": 7}
    assert [
        (g["topic"], g["partition"], g["first"], g["end"]) for g in place.bronze.payload.gaps
    ] == [
        ("a", 0, 5, 7),
        ("a", 1, 5, 7),
    ]
    read_all(source)
    assert place.bronze.payload.offsets == {"0": 9, "1": 9}
    place.start()
    assert len(place.bronze.payload.gaps) == 2


def test_a_log_that_was_cut_off_is_never_passed_over(place: Place) -> None:
    place.brokers.make("a", 5)
    read_all(place.start())
    place.brokers.logs["a"][0].end = 3
    with pytest.raises(OffsetsLostError, match="offsets 3 to 4") as error:
        place.start(accept_gap=True)
    assert "--root" in error.value.remedy


def test_a_removed_topic_is_a_loss_and_then_nothing_to_go_on_with(place: Place) -> None:
    place.brokers.make("a", 5)
    read_all(place.start(topic="a"))
    place.brokers.remove("a")
    with pytest.raises(OffsetsLostError, match="a/0: offsets 5 to the end"):
        place.start(topic="a")
    with pytest.raises(UnknownTopicError):
        place.start(topic="a", accept_gap=True)
    place.brokers.make("a", 2)
    read_all(place.start(topic="a", accept_gap=True))
    assert place.bronze.payload.offsets == {str(1 << 16): 2}


def test_what_expired_shows_when_reading_fails(place: Place) -> None:
    place.brokers.make("a", 5)
    source = place.start()

    def expire() -> None:
        place.brokers.logs["a"][0].first = 2
        raise Py4JError("offset out of range")

    place.reading.meanwhile = expire
    with pytest.raises(OffsetsLostError, match="a/0: offsets 0 to 1 .expired"):
        source.ingest()


def test_a_read_that_fails_is_tried_again_and_not_for_ever(place: Place) -> None:
    place.brokers.make("a", 5)
    source = place.start()
    failures = 0

    def fail() -> None:
        nonlocal failures
        failures += 1
        place.reading.meanwhile = fail
        raise Py4JError("no reason")

    place.reading.meanwhile = fail
    with pytest.raises(Py4JError):
        source.ingest()
    assert failures == batches.READ_ATTEMPTS


JAVA = """An error occurred while calling o7.collectToPython.
: org.apache.spark.SparkException: Job aborted due to stage failure
Caused by: org.apache.kafka.common.errors.{cause}: its message, with hunter22
	at org.apache.kafka.common.config.AbstractConfig.parse(AbstractConfig.java:1)
"""


@pytest.mark.parametrize(
    ("cause", "code", "told"),
    [
        ("TopicAuthorizationException", 3, "do not let this user read a"),
        ("SaslAuthenticationException", 3, "do not let this user read a"),
        ("CorruptRecordException", 3, "answer, but a cannot be read"),
        ("TimeoutException", 7, "answer, but a cannot be read"),  # a driver is started again
        ("UnknownServerException", 7, "answer, but a cannot be read"),
    ],
)
def test_a_read_that_kafka_refuses_names_the_cause_and_nothing_else(
    place: Place, cause: str, code: int, told: str
) -> None:
    place.brokers.make("a", 5)
    source, failures = place.start(topic="a"), list[int]()

    def fail() -> None:
        failures.append(1)
        place.reading.meanwhile = fail
        raise Py4JError(JAVA.format(cause=cause))

    place.reading.meanwhile = fail
    with pytest.raises(SourceError) as error:
        source.ingest()
    assert error.value.message == f"the brokers localhost:1 {told} ({cause})"
    assert error.value.exit_code == code
    assert error.value.__cause__ is None
    assert ("READ" in error.value.remedy) is ("do not let" in told)
    assert len(failures) == batches.READ_ATTEMPTS


def test_what_expired_shows_when_the_last_attempt_fails(place: Place) -> None:
    place.brokers.make("a", 5)
    source, failures = place.start(), list[int]()

    def fail() -> None:
        failures.append(1)
        place.reading.meanwhile = fail
        if len(failures) == batches.READ_ATTEMPTS:
            place.brokers.logs["a"][0].first = 2
        raise Py4JError("offset out of range")

    place.reading.meanwhile = fail
    with pytest.raises(OffsetsLostError, match="a/0: offsets 0 to 1 .expired"):
        source.ingest()
    assert len(failures) == batches.READ_ATTEMPTS


def test_a_range_that_bronze_has_committed_is_not_committed_again(place: Place) -> None:
    place.brokers.make("a", 5)
    source = place.start()

    def fail() -> None:
        raise Py4JError("after the commit")

    place.bronze.then = fail
    with pytest.raises(Py4JError, match="after the commit"):
        source.ingest()
    assert [c.offsets for c in place.bronze.commits] == [{"0": 0}, {"0": 5}]


def test_brokers_are_borne_with_for_as_long_as_declared(place: Place) -> None:
    place.brokers.make("a", 5)
    source = place.start(**A_MINUTE)
    place.brokers.silent = 1000
    source.poll(final=False)
    place.now += 59
    source.poll(final=False)
    assert "no answer from the brokers localhost:1 for 59 s" in (source.trouble or "")
    place.now += 1
    with pytest.raises(BrokersUnreachableError, match="asked for 60 s"):
        source.poll(final=False)
    place.brokers.silent = 0
    source.poll(final=False)
    assert source.trouble is None


def test_a_final_poll_waits_for_an_answer(place: Place) -> None:
    place.brokers.make("a", 5)
    source = place.start()
    read_all(source)
    place.brokers.logs["a"][0].end = 6
    place.brokers.silent = 3
    source.poll(final=True)
    assert not source.has_ingested_all()
    read_all(source)
    assert source.has_ingested_all()


def test_what_arrives_after_the_final_poll_is_left(place: Place) -> None:
    place.brokers.make("a", 5)
    source = place.start()
    source.poll(final=True)
    place.brokers.logs["a"][0].end = 9
    source._share(source._list_raw())  # as after a doubtful read
    read_all(source)
    assert source.has_ingested_all()
    assert place.bronze.payload.offsets == {"0": 5}


def test_a_stop_is_heard_while_brokers_do_not_answer(place: Place) -> None:
    place.brokers.make("a", 5)
    source = place.start()
    place.brokers.silent = 1000

    def stop() -> None:
        raise StopRequested

    place.check = stop
    with pytest.raises(StopRequested):
        source.poll(final=True)


def test_brokers_that_are_silent_at_the_commit_do_not_end_the_driver(place: Place) -> None:
    place.brokers.make("a", 5)
    source = place.start()

    def fall_silent() -> None:
        place.brokers.silent = 3

    place.reading.meanwhile = fall_silent
    assert source.ingest()
    assert place.bronze.payload.offsets == {"0": 5}


def test_a_topic_that_came_and_went_unread_is_not_waited_for(place: Place) -> None:
    place.brokers.make("a", 5)
    source = place.start(max_per_batch=3)
    place.brokers.make("b", 5)
    source.poll(final=True)
    place.brokers.remove("b")
    # Another one appears, so the next commit lists again.
    place.brokers.make("c", 5)
    place.reading.meanwhile = lambda: source._share(source._list_raw())
    read_all(source)
    assert source.has_ingested_all()
    assert place.bronze.payload.offsets["0"] == 5


def test_idle_partitions_are_not_waited_for(place: Place) -> None:
    place.brokers.make("a", 5, 5)
    source = place.start(idle_after="10 seconds")
    read_all(source)
    for _ in range(12):
        place.now += 1
        place.brokers.logs["a"][0].end += 1
        source.poll(final=False)
    read_all(source)
    assert set(place.bronze.commits[-1].partitions) == {0}
    assert {n: p.idle for n, p in source.backlog().partitions.items()} == {
        "a/0": False,
        "a/1": True,
    }
    place.brokers.logs["a"][1].end += 1
    source.poll(final=False)
    read_all(source)
    assert set(place.bronze.commits[-1].partitions) == {0, 1}


def test_a_partition_that_becomes_idle_while_a_read_is_planned_is_not_idle_in_this_batch(
    place: Place,
) -> None:
    """A commit never says that a partition was idle before its own time."""
    place.brokers.make("a", 5, 5)
    source = place.start(idle_after="10 seconds")
    read_all(source)

    def observe() -> None:
        place.now += 1
        place.brokers.logs["a"][0].end += 1
        source.poll(final=False)

    for _ in range(10):
        observe()
    place.reading.meanwhile = observe
    assert source.ingest()
    assert set(place.bronze.commits[-1].partitions) == {0, 1}
    assert source.ingest()
    assert set(place.bronze.commits[-1].partitions) == {0}


def test_the_clocks_of_partitions_are_those_of_the_last_commit(place: Place) -> None:
    place.brokers.make("a", 5, 5)
    place.bronze.clocks = {"0": 1_000_001}
    source = place.start()
    assert all(part.clock is None for part in source.backlog().partitions.values())
    read_all(source)
    clocks = {name: part.clock for name, part in source.backlog().partitions.items()}
    assert clocks == {"a/0": "1970-01-01T00:00:01.000001+00:00", "a/1": None}
    assert source.backlog().holding == "a/1"
    again = place.start()
    assert {name: part.clock for name, part in again.backlog().partitions.items()} == clocks


def test_batches_shrink_to_what_fits_and_backlog_says_the_rest(place: Place) -> None:
    place.brokers.make("a", 1000, 0)
    source = place.start(max_per_batch=400, min_per_batch=10, batch_target="10 s")
    assert source.pending() == 3
    assert source.ingest()
    source.batch_took(timedelta(seconds=20))
    place.now += 30
    backlog = source.backlog()
    assert (backlog.count, backlog.seconds) == (600, 30)
    assert {name: part.records for name, part in backlog.partitions.items()} == {
        "a/0": 600,
        "a/1": 0,
    }
    assert source.pending() == 3
