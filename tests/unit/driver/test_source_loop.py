"""The loop that plans, reads, retries and commits for all sources, with a source of numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from headgate.driver.source_loop import HELD_FOR, READ_ATTEMPTS, SourceLoop
from headgate.flow.bronze.batches import ScratchLostError
from headgate.flow.sources.errors import SourceError, SourceUnreachableError
from headgate.flow.sources.micro_batches import BatchEnd, MicroBatchSource, SourceBatch
from headgate.flow.sources.records import PartedRecords
from headgate.lake.control.driver_reports import Backlog
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import State

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
LOST = ScratchLostError("a part is lost", remedy="start again")


class Numbers(MicroBatchSource[range]):
    """The numbers up to ``end``, four in a batch. ``reads`` are what happens in the next reads,
    ``instead`` what the source says about the next failures."""

    every = 1.0

    def __init__(self, end: int, start: int | None = None) -> None:
        self.end = end
        self.start = None if start is None else BatchEnd({"number": start})
        self.planned: list[range] = []
        self.lasts: list[bool] = []
        self.reads: list[Callable[[], None]] = []
        self.instead: dict[int, range] = {}
        self.closed = False

    def poll(self, at: BronzePayload, *, final: bool) -> None:
        return

    def pending(self, at: BronzePayload) -> int:
        return -(-(self.end - at.offsets.get("number", 0)) // 4)

    def backlog(self, at: BronzePayload) -> Backlog:
        return Backlog("records", self.end - at.offsets.get("number", 0))

    def next_range(self, at: BronzePayload) -> range | None:
        return range(at.offsets.get("number", 0), self.end)[:4] or None

    def read(self, planned: range, now: datetime) -> SourceBatch:
        self.planned.append(planned)
        if self.reads:
            self.reads.pop(0)()
        return SourceBatch(cast(Any, list(planned)), BatchEnd({"number": planned.stop}))

    def failed(self, planned: range, error: Exception, *, is_last: bool) -> range | None:
        self.lasts.append(is_last)
        return self.instead.get(len(self.lasts))

    def close(self) -> None:
        self.closed = True


@dataclass
class Bronze:
    """``then`` is called after a commit, and may raise."""

    state: State = field(default_factory=lambda: State(BronzePayload()))
    read: list[int] = field(default_factory=list)
    then: Callable[[], None] = lambda: None

    lock: AbstractContextManager[object] = field(default_factory=nullcontext)

    def refresh(self) -> State:
        return self.state

    def position(self, state: State) -> BronzePayload:
        return BronzePayload.of(state)

    def ingest(self, batch: SourceBatch, now: datetime) -> State:
        payload = replace(BronzePayload.of(self.state), offsets=dict(batch.end.offsets))
        self.state = replace(self.state, n=self.state.n + 1, payload=payload)
        if not isinstance(batch.records, PartedRecords):
            self.read += cast(list[int], batch.records)
        self.then()
        return self.state


def fails(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def loop_of(source: Numbers, bronze: Bronze) -> SourceLoop:
    return SourceLoop("a", lambda _: source, bronze, lambda: NOON, lambda: 0.0)


def test_batch_by_batch_until_there_is_no_input() -> None:
    source, bronze = Numbers(6), Bronze()
    loop = loop_of(source, bronze)
    assert [loop.ingest(), loop.ingest(), loop.ingest()] == [True, True, False]
    assert bronze.read == [*range(6)]
    assert (bronze.state.n, loop.has_ingested_all()) == (2, True)


def test_a_start_is_committed_before_anything_is_read() -> None:
    source, bronze = Numbers(6, start=3), Bronze()
    loop = loop_of(source, bronze)
    loop.begin()
    assert (bronze.state.n, source.planned, loop.backlog().count) == (1, [], 3)
    assert loop.ingest()
    assert bronze.read == [3, 4, 5]


def test_the_bronze_stage_is_taken_before_the_listing_lock() -> None:
    """As maintenance does. A source that was held is opened by its next listing."""
    was_listing = list[bool]()

    @contextmanager
    def stage() -> Iterator[None]:
        was_listing.append(cast(Any, loop.listing_lock)._is_owned())
        yield

    loop = loop_of(Numbers(3), Bronze(lock=stage()))
    loop.poll(final=True)
    assert was_listing == [False]


def test_a_start_that_is_not_committed_closes_the_source() -> None:
    source, bronze = Numbers(6, start=3), Bronze(then=fails(OSError("the disk")))
    with pytest.raises(OSError, match="the disk"):
        loop_of(source, bronze).begin()
    assert source.closed


@pytest.mark.parametrize("error", [OSError(), EOFError(), LOST])
def test_a_failed_read_is_tried_again(error: Exception) -> None:
    source, bronze = Numbers(3), Bronze()
    source.reads = [fails(error), fails(error)]
    assert loop_of(source, bronze).ingest()
    assert source.lasts == [False, False]
    assert source.planned == [range(3)] * 3


def test_it_is_not_tried_for_ever() -> None:
    source, bronze = Numbers(3), Bronze()
    source.reads = [fails(OSError("no answer"))] * 9
    with pytest.raises(OSError, match="no answer"):
        loop_of(source, bronze).ingest()
    assert source.lasts == [False] * (READ_ATTEMPTS - 1) + [True]
    assert bronze.read == []


def test_what_the_source_reads_instead_is_no_further_attempt() -> None:
    source, bronze = Numbers(4), Bronze()
    source.reads = [fails(OSError())] * 4
    source.instead = {1: range(3), 4: range(2)}
    loop = loop_of(source, bronze)
    assert loop.ingest()
    assert source.planned == [range(4), range(3), range(3), range(3), range(2)]
    assert source.lasts == [False, False, False, True]
    assert loop.ingest()
    assert bronze.read == [0, 1, 2, 3]


def test_a_committed_batch_is_not_committed_again() -> None:
    source, bronze = Numbers(3), Bronze(then=fails(OSError("after the commit")))
    loop = loop_of(source, bronze)
    with pytest.raises(OSError, match="after the commit"):
        loop.ingest()
    assert (bronze.read, source.lasts) == ([0, 1, 2], [])


@pytest.mark.parametrize("error", [SourceError("it has changed", "put it back"), ValueError("?")])
def test_what_is_no_failed_read_is_not_tried_again(error: Exception) -> None:
    source, bronze = Numbers(3), Bronze()
    source.reads = [fails(error)]
    with pytest.raises(type(error)):
        loop_of(source, bronze).ingest()
    assert len(source.planned) == 1


def test_a_source_that_does_not_answer_is_read_again_later() -> None:
    now = 0.0
    source, bronze = Numbers(3), Bronze()
    source.reads = [fails(SourceUnreachableError("no answer", "look"))]
    loop = SourceLoop("a", lambda _: source, bronze, lambda: NOON, lambda: now)

    def is_away() -> bool:
        return loop.outage is not None

    assert not loop.ingest()
    assert is_away()
    assert loop.pending() == 0
    now = 1.0
    assert loop.pending() == 1
    assert loop.ingest()
    assert not is_away()
    assert bronze.read == [0, 1, 2]


def test_it_continues_where_bronze_is_also_after_bronze_went_back() -> None:
    """A rebuild of bronze is published at an earlier batch than it has reached."""
    source, bronze = Numbers(8), Bronze()
    loop = loop_of(source, bronze)
    loop.ingest()
    loop.ingest()
    bronze.state = State(BronzePayload(offsets={"number": 4}), n=1)
    loop.ingest()
    assert bronze.read == [0, 1, 2, 3, 4, 5, 6, 7, 4, 5, 6, 7]


CHANGED = SourceError("a.json was rewritten", "put it back")


@dataclass
class OfSeveral:
    """A source whose errors hold it, as if there were others."""

    source: Numbers
    bronze: Bronze = field(default_factory=Bronze)
    limit: timedelta | None = None
    now: float = 0.0

    def __post_init__(self) -> None:
        self.loop = SourceLoop(
            *("a", lambda _: self.source, self.bronze),
            lambda: NOON + timedelta(seconds=self.now),
            lambda: self.now,
            limit=self.limit,
            holds=lambda error: isinstance(error, SourceError),
        )

    @property
    def reason(self) -> str | None:
        failure = self.loop.reports()["a"].failure
        return failure.reason if failure else None


def test_one_of_several_sources_that_cannot_be_read_is_held_and_tried_again() -> None:
    several = OfSeveral(Numbers(3))
    several.source.reads = [fails(CHANGED), fails(CHANGED)]
    loop = several.loop
    assert not loop.ingest()
    assert (several.reason, loop.pending(), loop.outage) == (CHANGED.message, 0, None)
    several.now = HELD_FOR - 1
    loop.poll(final=False)
    assert (loop.pending(), loop.ingest()) == (0, False)
    assert len(several.source.planned) == 1, "it is held"
    several.now = HELD_FOR
    assert loop.pending() == 1
    assert not loop.ingest()
    failure = loop.reports()["a"].failure
    assert failure is not None
    assert failure.since == NOON, "it has not been read in between"
    several.now = 2 * HELD_FOR
    loop.poll(final=False)
    reasons = [several.reason]
    assert loop.ingest()
    reasons.append(several.reason)
    assert reasons == [CHANGED.message, None], "a listing does not prove that it can be read"
    assert several.bronze.read == [0, 1, 2]


def test_a_held_source_that_has_nothing_to_read_any_more_is_free() -> None:
    several = OfSeveral(Numbers(3))
    several.source.reads = [fails(CHANGED)]
    several.loop.ingest()
    several.source.end = 0
    reasons = list[str | None]()
    for now in (0, HELD_FOR):
        several.now = now
        several.loop.poll(final=False)
        reasons.append(several.reason)
    assert reasons == [CHANGED.message, None]


def test_a_source_whose_listing_fails_is_held_until_it_is_listed() -> None:
    several = OfSeveral(Numbers(3))
    several.loop.begin()
    poll, several.source.poll = several.source.poll, raises(CHANGED)  # type: ignore[method-assign]
    several.loop.poll(final=False)
    assert several.reason == CHANGED.message
    several.source.poll = poll  # type: ignore[method-assign]
    several.now = HELD_FOR
    assert several.loop.ingest(), "what was listed can be read"
    assert several.reason == CHANGED.message
    several.loop.poll(final=False)
    assert several.reason is None


def test_a_source_that_cannot_be_opened_is_held_and_opened_later() -> None:
    several = OfSeveral(Numbers(3))
    opened = list[float]()

    def open_(_: object) -> Numbers:
        opened.append(several.now)
        if several.now < HELD_FOR:
            raise CHANGED
        return several.source

    several.loop._open = open_
    several.loop.begin()
    several.loop.poll(final=False)
    assert (several.reason, several.loop.pending()) == (CHANGED.message, 0)
    assert several.loop.reports()["a"].backlog is None
    several.now = HELD_FOR
    several.loop.poll(final=False)
    assert (several.reason, opened) == (None, [0, HELD_FOR])
    assert several.loop.ingest()


def test_a_run_that_is_to_end_holds_a_source_that_does_not_answer_for_good() -> None:
    several = OfSeveral(Numbers(3), limit=timedelta())
    several.source.reads = [fails(SourceUnreachableError("no answer", "look"))]
    assert not several.loop.ingest()
    assert (several.reason, several.loop.outage) == ("no answer", None)
    several.now = 1e6
    assert several.loop.pending() == 0


def test_what_fails_after_a_commit_ends_the_driver_also_beside_other_sources() -> None:
    """What the stage has in memory lacks the batch."""
    several = OfSeveral(Numbers(3), Bronze(then=fails(OSError("after the commit"))))
    several.loop._holds = lambda _: True
    with pytest.raises(OSError, match="after the commit"):
        several.loop.ingest()


def test_a_range_is_planned_read_and_committed_under_the_lock_of_bronze() -> None:
    done = list[str]()

    class Lock(AbstractContextManager[None]):
        def __enter__(self) -> None:
            done.append("taken")

        def __exit__(self, *_: object) -> None:
            done.append("released")

    source, bronze = Numbers(3), Bronze(then=lambda: done.append("committed"), lock=Lock())
    loop = loop_of(source, bronze)
    loop.begin()
    assert done == ["taken", "released"]
    source.reads = [lambda: done.append("read")]
    assert loop.ingest()
    assert done[2:] == ["taken", "read", "committed", "released"]


def raises(error: Exception) -> Callable[..., None]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail
