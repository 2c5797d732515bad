"""What a load of history does when something fails, and while gold's tables are behind."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JError

from headgate.driver import loading as module
from headgate.driver.errors import StopRequested
from headgate.driver.loading import Loading, LoadStep, may_begin_step
from headgate.driver.run_control import BatchLock
from headgate.driver.source_loop import SourceLoop
from headgate.flow.sources.errors import SourceError, SourceUnreachableError
from headgate.flow.sources.loading import LoadPlan
from headgate.history.loads import requests
from headgate.history.loads.requests import LoadRequest
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import State
from tests.support.decisions import control_of
from tests.support.loads import begin_load, wishes
from tests.unit.driver.conftest import Tables

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
PLAN = LoadPlan({"sequence": 0}, {"sequence": 4}, "4 files of a", "files")


@dataclass
class Bench:
    """A load between a reader and bronze, of which only what the test sets is real."""

    layout: Layout
    ingest: Callable[[], object] = lambda: True
    n: int = 0
    behind: list[str] = field(default_factory=list)
    read: bool = False
    caught_up: int = 0
    limit: timedelta | None = None
    moment: float = 0.0
    next_replay: Callable[[object], object] = lambda _: None

    def __post_init__(self) -> None:
        self.request = LoadRequest("l-1", "events", PLAN, "me", NOW)
        begin_load(self.layout, "p", self.request)
        bronze = SimpleNamespace(
            refresh=lambda: State(BronzePayload(), n=self.n), lock=threading.RLock()
        )
        control = control_of(self.layout.storage, "p")
        runtime = SimpleNamespace(
            bronze={"events": bronze}, control=control, decide=lambda decide: decide({})
        )
        self.run: Any = SimpleNamespace(
            layout=self.layout,
            task=SimpleNamespace(pipeline=SimpleNamespace(name="p")),
            spark=None,
            runtime=runtime,
            control=SimpleNamespace(batch_lock=BatchLock(), check_requests=lambda: None),
            clock=lambda: NOW,
            catch_up=SimpleNamespace(run=self._catch_up),
            say=lambda _: None,
        )
        self.loading = Loading(cast(Any, self.run))
        self.loading._opened = cast(
            Any,
            SimpleNamespace(
                id="l-1",
                writer=SimpleNamespace(load=SimpleNamespace(offsets={"sequence": 4 * self.read})),
                loop=self._loop(),
                planner=SimpleNamespace(behind=lambda _: self.behind, next_replay=self.next_replay),
            ),
        )

    def _loop(self) -> SourceLoop:
        reader = SimpleNamespace(
            start=None,
            next_range=lambda _: range(1),
            read=lambda *_: self.ingest(),
            failed=lambda *_, **__: None,
            close=lambda: None,
        )
        bronze = SimpleNamespace(
            lock=nullcontext(),
            refresh=lambda: State(BronzePayload(), n=self.n),
            position=BronzePayload.of,
            ingest=lambda *_: State(BronzePayload(), n=self.n),
        )
        loop = SourceLoop(
            *("events", lambda _: cast(Any, reader), cast(Any, bronze)),
            *(lambda: NOW, lambda: self.moment),
            limit=self.limit,
        )
        loop.begin()
        return loop

    def _catch_up(self, **_: object) -> None:
        self.caught_up += 1

    def take(self) -> bool:
        return self.loading._take(self.request, dict)

    @property
    def wish(self) -> str:
        return wishes(self.layout, "p")["l-1"]


def raises(error: BaseException, before: Callable[[], None] = lambda: None) -> Callable[[], object]:
    def ingest() -> object:
        before()
        raise error

    return ingest


@pytest.fixture(autouse=True)
def jvm(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether the JVM has ended."""
    ended = [False]
    monkeypatch.setattr(module, "has_ended", lambda _: ended[0])
    return ended


def test_history_that_cannot_be_read_stops_the_load(tables: Tables) -> None:
    bench = Bench(tables.layout, raises(SourceError("a.json has vanished", "put it back")))
    assert bench.take()
    assert bench.wish == "stopped"


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (
            Py4JError(
                "An error occurred while calling o7.collectToPython.\n"
                ": org.apache.spark.SparkException: Job aborted\n\tat org.apache.spark.Task.run\n"
                "Caused by: java.lang.IllegalStateException: has secrets\n"
            ),
            "Py4JError: An error occurred while calling o7.collectToPython. "
            "(java.lang.IllegalStateException)",
        ),
        (OSError("no answer\nfrom it"), "OSError: no answer"),
    ],
)
def test_an_error_of_the_jvm_names_its_cause(tables: Tables, error: Exception, why: str) -> None:
    bench = Bench(tables.layout, raises(error))
    assert bench.take()
    found = requests.find_load(tables.layout, "p", "l-1")
    assert found is not None
    assert found.why == why


def test_an_error_after_bronzes_commit_ends_the_driver(tables: Tables) -> None:
    """The index of ids in memory lacks the batch, so this driver would miss duplicates."""
    bench = Bench(tables.layout)

    def commit() -> None:
        bench.n += 1

    bench.ingest = raises(OSError("the checkpoint was not written"), commit)
    with pytest.raises(OSError, match="checkpoint"):
        bench.take()
    assert bench.wish == "open"


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        StopRequested(),
    ],
)
def test_what_passes_leaves_the_load_open(tables: Tables, error: Exception) -> None:
    bench = Bench(tables.layout, raises(error))
    with pytest.raises(type(error)):
        bench.take()
    assert bench.wish == "open"


def test_history_that_does_not_answer_is_tried_again_later(tables: Tables) -> None:
    asked = list[float]()

    def ingest() -> object:
        asked.append(bench.moment)
        raise SourceUnreachableError("no answer", "see whether it listens")

    bench = Bench(tables.layout, ingest)
    for _ in range(240):  # four steps a second
        assert not bench.take()
        bench.moment += 0.25
    assert asked == [0, 1, 3, 7, 15, 31]
    assert bench.loading.outage is not None
    assert (bench.loading.outage.what, bench.wish) == ("no answer", "open")


def test_a_run_that_is_to_end_leaves_a_load_open_whose_history_does_not_answer(
    tables: Tables,
) -> None:
    error = SourceUnreachableError("no answer", "see whether it listens")
    bench = Bench(tables.layout, raises(error), limit=timedelta())
    with pytest.raises(SourceUnreachableError):
        bench.take()
    assert bench.wish == "open"


def test_a_jvm_that_has_ended_leaves_the_load_open(tables: Tables, jvm: list[bool]) -> None:
    jvm[0] = True
    bench = Bench(tables.layout, raises(ConnectionError("the connection was lost")))
    with pytest.raises(ConnectionError):
        bench.take()
    assert bench.wish == "open"


def test_a_load_whose_rows_gold_lacks_lets_the_caller_wait(tables: Tables) -> None:
    """Otherwise a held gold table would turn the supervising thread into a busy loop."""
    bench = Bench(tables.layout, read=True, behind=["gold/per_minute"])
    assert not bench.take()
    assert (bench.caught_up, bench.wish) == (1, "open")


def test_an_error_before_a_replay_ends_the_driver(tables: Tables) -> None:
    bench = Bench(tables.layout, read=True, next_replay=raises_with(LogGapError("a", "b")))
    with pytest.raises(LogGapError):
        bench.take()
    assert bench.wish == "open"


def raises_with(error: Exception) -> Callable[[object], object]:
    def fail(_: object) -> object:
        raise error

    return fail


STEP = LoadStep(began=100, ended=104, rows=2_000)


@pytest.mark.parametrize(
    ("now", "share", "rate", "has_input", "expected"),
    [
        (104, 0.5, None, False, True),  # the stream has no input
        (104, 0.5, None, True, False),
        (107.9, 0.5, None, True, False),
        (108, 0.5, None, True, True),  # it waits as long as the step took
        (115.9, 0.25, None, True, False),
        (116, 0.25, None, True, True),
        (104, 1.0, None, True, True),
        (104, 0.5, 100, False, False),  # 2,000 records take 20 seconds
        (119.9, 0.5, 100, False, False),
        (120, 0.5, 100, False, True),
    ],
)
def test_it_waits_for_its_share_and_its_rate(
    now: float, share: float, rate: int | None, has_input: bool, expected: bool
) -> None:
    assert may_begin_step(now, STEP, share=share, rate=rate, has_input=has_input) == expected


def test_the_first_step_waits_for_nothing() -> None:
    assert may_begin_step(0, None, share=0.01, rate=1, has_input=True)


@pytest.mark.parametrize("has_input", [False, True])
def test_other_sources_go_on_while_a_load_is_read(tables: Tables, has_input: bool) -> None:
    bench = Bench(tables.layout)
    lock = bench.run.control.batch_lock
    with bench.loading._turn("events", has_input) as has_turn:
        assert has_turn
        with lock.if_free() as is_free:
            assert is_free, "silver and gold follow the other sources"


def test_a_load_takes_no_turn_while_a_batch_of_its_source_is_read(tables: Tables) -> None:
    bench = Bench(tables.layout)
    turns = list[bool]()

    def take() -> None:
        with bench.loading._turn("events", has_input=False) as has_turn:
            turns.append(has_turn)

    thread = threading.Thread(target=take)
    with bench.run.runtime.bronze["events"].lock:
        thread.start()
        thread.join()
    take()
    assert turns == [False, True]
