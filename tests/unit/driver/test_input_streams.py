"""Streams of several inputs beside each other, with fake inputs and a fake Spark: none waits for
another."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate.driver import input_stream, stream
from headgate.driver.errors import StopRequested
from headgate.driver.input_stream import InputStream
from headgate.driver.job_input import JobInput
from headgate.driver.run import DriverRun
from headgate.driver.run_control import BatchLock, PauseLatch
from headgate.driver.source_hold import SourceHold
from headgate.driver.stream import StreamSupervisor
from headgate.errors import HeadgateError
from headgate.flow.sources.errors import SourceError, joined_error
from headgate.lake.control.driver_reports import Backlog, Outage, SourceReport
from headgate.lake.control.driver_requests import SkipRequest, ask_to_skip, asked_to_skip
from headgate.lake.storage.documents import read_document
from headgate.lake.tables.errors import FencedError
from tests.unit.driver.conftest import Tables

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PATIENCE = 30.0  # seconds
GONE = SourceError("a.json is gone", "put it back")


class Numbered(JobInput):
    """``end`` batches. ``polled`` and ``reading`` are called in a listing and a batch."""

    every = 0.01

    def __init__(self, name: str, end: int = 0) -> None:
        super().__init__()
        self.name, self.end, self.next, self.is_closed = name, end, 0, False
        self.polled: Callable[[], None] = lambda: None
        self.reading: Callable[[], None] = lambda: None
        self.error: HeadgateError | None = None
        self.skipped: list[SkipRequest] = []

    @property
    def failure(self) -> HeadgateError | None:
        return self.error

    def poll(self, *, final: bool) -> None:
        self.polled()

    def pending(self) -> int:
        return 0 if self.error else self.end - self.next

    def ingest(self) -> bool:
        self.reading()
        self.next += 1
        return True

    def has_ingested_all(self) -> bool:
        return self.next == self.end

    def reports(self) -> Mapping[str, SourceReport]:
        return {self.name: SourceReport(Backlog("records", self.end - self.next))}

    def skip(self, wanted: SkipRequest) -> None:
        self.skipped.append(wanted)

    def close(self) -> None:
        self.is_closed = True


class Query:
    """Plans batches from the ends of a stream, as Spark does, on a thread."""

    def __init__(self, over: InputStream, layout: Any) -> None:
        self._stream, self._layout, self._end = over, layout, threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    @property
    def isActive(self) -> bool:  # noqa: N802
        return self.thread.is_alive()

    def exception(self) -> None:
        return None

    def stop(self) -> None:
        self._end.set()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()

    def _run(self) -> None:
        last = 0
        with suppress(Exception):
            while not self._end.wait(0.005):
                document = read_document(self._layout.storage, self._stream._ends) or {"ends": []}
                for end in [each for each in document["ends"] if each > last][:1]:
                    self._stream.batches.run(lambda end=end: end)  # type: ignore[misc]
                    last = end


@dataclass
class Bench:
    """A fused job with the inputs ``a`` and ``b``."""

    tables: Tables
    once: bool = True
    stopped: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)
    said: list[str] = field(default_factory=list)
    inside: list[str] = field(default_factory=list)
    caught_up: int = 0

    def __post_init__(self) -> None:
        self.a, self.b = Numbered("a"), Numbered("b")
        self.control = SimpleNamespace(
            batch_lock=BatchLock(),
            pause_latch=PauseLatch(),
            check=self.check,
            check_requests=self.check,
            end=self.ended.set,
            wait=lambda _: time.sleep(0.005),
            observe_stop_requests=lambda: None,
            observe_pause=lambda: None,
            require_lease=lambda: None,
            is_ending=False,
            is_stopping=False,
        )
        runtime = self.tables.runtime
        runtime.pipeline = SimpleNamespace(
            name="p", sources={"a": 1, "b": 1}, savepoints=None, gold={}, definitions=()
        )
        runtime.layers, runtime.owned = (), lambda: ()
        runtime.stages = SimpleNamespace(trouble=None)
        runtime.bronze = {"a": 1, "b": 1}
        self.run: Any = SimpleNamespace(
            layout=self.tables.layout,
            task=SimpleNamespace(pipeline=runtime.pipeline, once=self.once),
            job="fused",
            epoch=1,
            runtime=runtime,
            writes_bronze=True,
            control=self.control,
            catch_up=SimpleNamespace(run=self.catch_up, run_rest=lambda: None),
            publications=SimpleNamespace(stuck={}, trouble=None),
            progress=SimpleNamespace(
                sources={},
                batch_done=lambda *_: None,
                sources_ready=lambda _: None,
                idle=lambda *_: False,
            ),
            report=lambda _: None,
            say=self.said.append,
            tell=self.said.append,
            clock=lambda: NOON,
        )

    def check(self) -> None:
        if self.stopped.is_set() or self.ended.is_set():
            raise StopRequested

    def catch_up(self, *, one_step: bool = False) -> None:
        self.inside.append("catch-up")
        assert len(self.inside) == 1, "two threads use the tables"
        time.sleep(0.002)
        self.caught_up += 1
        self.inside.clear()

    def supervise(self) -> StreamSupervisor:
        run = cast(DriverRun, self.run)
        supervisor = StreamSupervisor(run)
        supervisor.supervise([InputStream(run, each.name, each) for each in (self.a, self.b)])
        return supervisor

    def stop(self) -> None:
        self.control.is_stopping = self.control.is_ending = True
        self.stopped.set()


@pytest.fixture
def bench(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(stream, "graph_of", lambda _: None, raising=False)
    monkeypatch.setattr(stream, "ScheduledLateReplays", _Scheduled)
    monkeypatch.setattr(stream, "ScheduledSavepoints", _Scheduled)
    monkeypatch.setattr(stream, "Maintaining", lambda *_: SimpleNamespace(step=lambda: None))
    monkeypatch.setattr(stream, "CHECK_EVERY", 0.01)
    monkeypatch.setattr(input_stream, "POLL", 0.005)
    monkeypatch.setattr(input_stream, "_LISTING_ENDS", 0.1)
    monkeypatch.setattr(InputStream, "start", start)
    return Bench(tables)


class _Scheduled:
    trouble: str | None = None

    def __init__(self, *_: object) -> None:
        return

    def run_due(self, _: datetime) -> None:
        return


def start(self: InputStream) -> None:
    self.query = cast(Any, Query(self, self._run.layout))


@contextmanager
def in_time() -> Iterator[threading.Event]:
    """An event that is set at the end of the test, so that no thread is left behind."""
    event = threading.Event()
    try:
        yield event
    finally:
        event.set()


def waits_for(event: threading.Event) -> Callable[[], None]:
    def wait() -> None:
        event.wait(PATIENCE)

    return wait


def test_batches_of_two_sources_are_read_at_the_same_time(bench: Bench) -> None:
    both = threading.Barrier(2, timeout=PATIENCE)
    for each in (bench.a, bench.b):
        each.end, each.reading = 3, both.wait  # type: ignore[assignment]
    bench.supervise()
    assert (bench.a.next, bench.b.next) == (3, 3)
    assert bench.caught_up >= 6, "one after the other brings the tables up to bronze"


def test_a_listing_that_does_not_return_holds_no_other_source(bench: Bench) -> None:
    with in_time() as returns:
        bench.a.end, bench.b.end = 1, 5
        bench.a.polled = waits_for(returns)
        bench.b.reading = lambda: bench.stop() if bench.b.next == 4 else None
        bench.supervise()
        assert (bench.a.next, bench.b.next) == (0, 5)
        assert bench.a.is_closed
        assert bench.b.is_closed


def test_a_listing_that_fails_because_the_run_has_ended_is_no_failure(bench: Bench) -> None:
    bench.run.task.once, begun = False, threading.Event()

    def closed() -> None:
        begun.set()
        while not bench.b.is_closed:
            time.sleep(0.005)
        raise OSError("the client is closed")

    with in_time() as returns:
        bench.a.polled = waits_for(returns)  # the end of this stream takes a while
        bench.b.polled = closed
        bench.a.begin = lambda: bench.stop() if begun.wait(PATIENCE) else None  # type: ignore[method-assign]
        bench.supervise()


def test_a_batch_that_is_slow_holds_no_other_source(bench: Bench) -> None:
    with in_time() as returns:
        bench.a.end, bench.b.end = 1, 5
        bench.a.reading = waits_for(returns)
        bench.b.reading = lambda: returns.set() if bench.b.next == 4 else None
        bench.supervise()
        assert (bench.a.next, bench.b.next) == (1, 5)


def test_a_run_to_the_end_names_the_source_that_it_could_not_read(bench: Bench) -> None:
    bench.a.error, bench.a.end, bench.b.end = GONE, 2, 3
    supervisor = bench.supervise()
    assert (bench.a.next, bench.b.next) == (0, 3)
    with pytest.raises(SourceError, match="source a: a.json is gone") as error:
        supervisor.require_all()
    assert error.value.remedy == GONE.remedy


def test_a_run_to_the_end_names_the_source_whose_tables_are_held(bench: Bench) -> None:
    bench.a.end, bench.b.end = 2, 3
    bench.tables.runtime.held = {"a": SourceHold(GONE, NOON)}
    supervisor = bench.supervise()
    assert (bench.a.next, bench.b.next) == (2, 3)
    assert supervisor._reports()["a"].failure == SourceHold(GONE, NOON).failure
    assert supervisor._reports()["b"].failure is None
    with pytest.raises(SourceError, match="source a: a.json is gone"):
        supervisor.require_all()


def test_a_driver_ends_when_each_source_is_held(bench: Bench) -> None:
    bench.run.task.once = False
    bench.a.error, bench.tables.runtime.held = GONE, {"b": SourceHold(GONE, NOON)}
    with pytest.raises(SourceError, match="source b: a.json is gone"):
        bench.supervise()


def test_a_driver_ends_when_no_source_can_be_read(bench: Bench) -> None:
    bench.run.task.once = False
    bench.a.error, bench.b.error = GONE, SourceError("b is lost", "accept it")
    with pytest.raises(SourceError) as error:
        bench.supervise()
    assert error.value.message == "source a: a.json is gone\nsource b: b is lost"
    assert error.value.remedy == "source a: put it back\nsource b: accept it"


@pytest.mark.parametrize("error", [FencedError("another driver", "nothing to do"), OSError("?")])
@pytest.mark.parametrize("where", ["polled", "reading"])
def test_what_concerns_the_driver_ends_all_streams(
    bench: Bench, error: Exception, where: str
) -> None:
    def fail() -> None:
        raise error

    bench.run.task.once = False
    bench.a.end, bench.b.end = 1, 1000
    setattr(bench.a, where, fail)
    with pytest.raises(type(error)):
        bench.supervise()
    assert bench.b.next < 1000
    assert bench.a.is_closed
    assert bench.b.is_closed


def test_a_stop_waits_for_the_batches_that_run(bench: Bench) -> None:
    bench.run.task.once = False
    begun = threading.Event()
    bench.a.end = bench.b.end = 1000

    def slow() -> None:
        begun.set()
        assert bench.stopped.wait(PATIENCE)
        time.sleep(0.02)

    bench.a.reading = slow
    bench.b.reading = lambda: bench.stop() if begun.is_set() else time.sleep(0.001)
    bench.supervise()
    assert bench.a.next == 1, "the batch was completed, and no other one began"
    assert bench.inside == []


def test_nothing_begins_during_a_pause(bench: Bench) -> None:
    bench.run.task.once = False
    bench.a.end = bench.b.end = 1
    bench.control.pause_latch.set(NOON)
    polls = list[str]()

    def polled() -> None:
        polls.append("a")
        if len(polls) == 20:
            bench.stop()

    bench.a.polled = polled
    bench.supervise()
    assert (bench.a.next, bench.b.next) == (0, 0)


def test_files_are_skipped_in_the_source_that_has_them(bench: Bench) -> None:
    bench.run.task.once = False
    wanted = SkipRequest("b", (1, 2), "sent again")
    ask_to_skip(bench.tables.layout, wanted)

    def polled() -> None:
        if bench.b.skipped:
            bench.stop()

    bench.a.polled = polled
    bench.supervise()
    assert (bench.a.skipped, bench.b.skipped) == ([], [wanted])
    assert asked_to_skip(bench.tables.layout) is None


def test_the_only_source_is_not_named() -> None:
    assert joined_error({"a": GONE}, ("a",)) is GONE


def test_an_error_that_a_new_driver_may_overcome_keeps_its_code() -> None:
    again = SourceError("a record cannot be read", "start again", code=7)
    assert joined_error({"a": again}, ("a", "b")).exit_code == 7
    assert joined_error({"a": again, "b": GONE}, ("a", "b")).exit_code == 3


def test_each_outage_is_told_with_its_source(bench: Bench) -> None:
    supervisor = StreamSupervisor(cast(DriverRun, bench.run))
    bench.run.progress.waits = lambda *_: None
    supervisor.waits("a", Outage("no answer", NOON, NOON))
    supervisor.waits("b", Outage("it is gone", NOON, NOON))
    assert [line.partition(",")[0] for line in bench.said] == [
        "source a: no answer",
        "source b: it is gone",
    ]
