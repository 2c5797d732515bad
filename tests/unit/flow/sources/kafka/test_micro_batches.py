"""Micro-batches of Kafka, from fake brokers with offsets only: listed, decided, committed."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from typing import Any, cast

import pytest
from py4j.protocol import Py4JError

from headgate.driver.errors import StopRequested
from headgate.driver.source_loop import SourceLoop
from headgate.flow.sources.errors import SourceError
from headgate.flow.sources.kafka.failures import BrokersUnreachableError
from headgate.flow.sources.kafka.micro_batches import KafkaMicroBatches
from headgate.flow.sources.kafka.topics import decoded_offsets
from tests.unit.flow.sources.kafka.conftest import NOON, Place, read_all


def relist(loop: SourceLoop, place: Place) -> None:
    source, at = cast(KafkaMicroBatches, loop.source), place.bronze.payload
    source._share(source._list_raw(at), decoded_offsets(at.offsets))


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


def test_a_range_that_bronze_has_committed_is_not_committed_again(place: Place) -> None:
    place.brokers.make("a", 5)
    source = place.start()

    def fail() -> None:
        raise Py4JError("after the commit")

    place.bronze.then = fail
    with pytest.raises(Py4JError, match="after the commit"):
        source.ingest()
    assert [c.offsets for c in place.bronze.commits] == [{"0": 0}, {"0": 5}]


def test_brokers_that_do_not_answer_are_asked_less_and_less_often_and_for_ever(
    place: Place,
) -> None:
    place.brokers.make("a", 5)
    source = place.awaited()
    place.brokers.silent, asked = 1000, list[float]()
    while place.now < 3_600:
        before = place.brokers.silent
        source.poll(final=False)
        if place.brokers.silent < before:
            asked.append(place.now)
        assert source.pending() == 0, "a batch would wait for the brokers"
        place.now += 1
    pauses = [later - earlier for earlier, later in pairwise(asked)]
    assert pauses == [1, 2, 4, 8, 16, *[30] * (len(pauses) - 5)]
    assert source.outage is not None
    assert source.outage.what == "no answer"
    assert source.outage.since == NOON
    assert source.outage.attempts == len(asked)


def test_a_run_that_is_to_end_waits_for_brokers_as_long_as_declared(place: Place) -> None:
    place.brokers.make("a", 5)
    source = place.awaited(limit=timedelta(minutes=1))
    place.brokers.silent = 1000
    with pytest.raises(BrokersUnreachableError, match=r"no answer; asked for 6\d s"):
        source.poll(final=True)
    assert 60 <= place.now < 90


def test_a_read_that_gets_no_answer_is_tried_again_once_brokers_list_again(place: Place) -> None:
    place.brokers.make("a", 5)
    source = place.awaited()

    def fall_silent() -> None:
        place.brokers.silent = 1000
        raise Py4JError("the read has failed")

    def is_away() -> bool:
        return source.outage is not None

    place.reading.meanwhile = fall_silent
    assert not source.ingest()
    assert is_away()
    assert source.pending() == 0
    for _ in range(600):
        place.now += 1
        source.poll(final=False)
    place.brokers.silent = 0
    place.now += 30
    source.poll(final=False)
    assert source.pending() == 1
    assert is_away(), "a listing does not prove that records can be read"
    assert source.ingest()
    assert not is_away()
    assert place.bronze.payload.offsets == {"0": 5}


def test_a_read_that_has_failed_often_is_tried_at_once_when_brokers_come_back(
    place: Place,
) -> None:
    place.brokers.make("a", 5)
    source = place.awaited()

    def fail() -> None:
        place.brokers.silent = 1
        raise Py4JError("the read has failed")

    for _ in range(6):
        place.reading.meanwhile = fail
        assert not source.ingest()
        place.now += 40
    place.reading.meanwhile = fail
    assert not source.ingest()
    place.brokers.silent = 1
    source.poll(final=False)
    place.now += 1
    assert source.pending() == 0, "it was tried a second ago"
    source.poll(final=False)
    assert source.pending() == 1


def test_a_start_waits_for_brokers(place: Place) -> None:
    place.brokers.make("a", 5)
    place.brokers.silent, waits = 8, list[None]()
    place.check = lambda: waits.append(None)
    read_all(place.awaited())
    assert place.now > 100
    assert len(waits) > 400, "a stop would not be heard"
    assert place.bronze.payload.offsets == {"0": 5}


def test_a_final_poll_waits_for_an_answer(place: Place) -> None:
    place.brokers.make("a", 5)
    source = place.awaited()
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
    relist(source, place)  # as after a doubtful read
    read_all(source)
    assert source.has_ingested_all()
    assert place.bronze.payload.offsets == {"0": 5}


def test_a_stop_is_heard_while_brokers_do_not_answer(place: Place) -> None:
    place.brokers.make("a", 5)
    source = place.awaited()
    place.brokers.silent = 1000

    def stop() -> None:
        raise StopRequested

    place.check = stop
    with pytest.raises(StopRequested):
        source.poll(final=True)


def test_a_batch_whose_topics_cannot_be_checked_is_read_again(place: Place) -> None:
    place.brokers.make("a", 5)
    source = place.awaited()

    def fall_silent() -> None:
        place.brokers.silent = 1

    place.reading.meanwhile = fall_silent
    assert not source.ingest()
    assert place.bronze.payload.offsets == {"0": 0}
    place.now += 1
    read_all(source)
    assert place.bronze.payload.offsets == {"0": 5}


def test_a_topic_that_came_and_went_unread_is_not_waited_for(place: Place) -> None:
    place.brokers.make("a", 5)
    source = place.start(max_per_batch=3)
    place.brokers.make("b", 5)
    source.poll(final=True)
    place.brokers.remove("b")
    # Another one appears, so the next commit lists again.
    place.brokers.make("c", 5)
    place.reading.meanwhile = lambda: relist(source, place)
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
