"""When a run with ``once`` ends, and what a driver reports between batches."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest

from headgate.driver.input_stream import InputStream
from headgate.driver.progress import JobProgress
from headgate.driver.run import DriverRun
from headgate.driver.run_control import BatchLock, PauseLatch
from headgate.driver.stream import StreamSupervisor
from headgate.flow.sources.loading import LoadPlan
from headgate.history.loads.requests import LoadRequest
from headgate.history.replay.requests import ReplayDocument, request_replay
from headgate.lake.control.driver_reports import Backlog, Outage
from headgate.lake.control.ownership import LAYERS
from headgate.lake.control.requests import send_request, waiting_requests
from tests.support.loads import begin_load
from tests.support.reported import of_b
from tests.unit.driver.conftest import Tables

REREAD = frozenset({"b"})
NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)


@dataclass
class Running:
    """A run whose source has nothing left, while bronze is rebuilt. A catch-up publishes the
    rebuild, unless a gate holds it."""

    tables: Tables
    is_held: bool = False
    done: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        runtime = self.tables.runtime
        runtime.layers, runtime.reread, runtime.undecidable = LAYERS, REREAD, REREAD
        runtime.decide_operation = lambda name, *_: self.done.append(name)
        progress = SimpleNamespace(batch_done=lambda *_: None)
        run: Any = SimpleNamespace(
            layout=self.tables.layout,
            task=SimpleNamespace(pipeline=runtime.pipeline),
            runtime=runtime,
            writes_bronze=True,
            control=SimpleNamespace(
                batch_lock=BatchLock(), pause_latch=PauseLatch(), check_requests=lambda: None
            ),
            catch_up=SimpleNamespace(run=self.catch_up),
            progress=progress,
            report=lambda _: None,
            say=lambda _: None,
            clock=lambda: NOW,
        )
        self.supervisor = StreamSupervisor(cast(DriverRun, run))

    def catch_up(self, *, one_step: bool = False) -> None:
        self.done.append("a step" if one_step else "a catch-up")
        if not self.is_held:
            self.publish()

    def publish(self) -> None:
        runtime = self.tables.runtime
        runtime.reread = runtime.undecidable = frozenset()

    def is_done(self, *, processed: bool = True) -> bool:
        self.supervisor.streams = [stream_of(is_done=processed)]
        return self.supervisor._is_done()


def stream_of(outage: Outage | None = None, *, is_done: bool = True, **report: Any) -> InputStream:
    reports = lambda: of_b(Backlog("files", 0), outage=outage, **report)  # noqa: E731
    batches = SimpleNamespace(is_running=False)
    source = SimpleNamespace(reports=reports, outage=outage, failure=None)
    return cast(
        InputStream, SimpleNamespace(name="b", input=source, is_done=is_done, batches=batches)
    )


@pytest.fixture
def running(tables: Tables) -> Running:
    return Running(tables)


def keep_load(running: Running) -> None:
    plan = LoadPlan({"sequence": 0}, {"sequence": 4}, "4 files", "files")
    begin_load(running.tables.layout, "p", LoadRequest("l-1", "b", plan, "me", NOW))


def test_an_open_load_goes_on_once_the_rebuild_of_bronze_is_published(running: Running) -> None:
    keep_load(running)
    assert not running.is_done(processed=False)
    assert running.done == []
    assert not running.is_done()
    assert running.done == ["a catch-up"]


def test_a_run_ends_beside_a_rebuild_that_is_held_and_what_was_asked_waits(
    running: Running,
) -> None:
    running.is_held = True
    keep_load(running)
    send_request(running.tables.layout, "drain", {}, NOW)
    assert running.is_done()
    assert len(waiting_requests(running.tables.layout)) == 1


@pytest.mark.parametrize("is_published", [False, True])
def test_what_people_asked_for_during_a_rebuild_of_bronze_is_taken_in(
    running: Running, is_published: bool
) -> None:
    """The last batch may have published the rebuild."""
    if is_published:
        running.publish()
    send_request(running.tables.layout, "drain", {}, NOW)
    assert running.is_done()
    assert waiting_requests(running.tables.layout) == ()
    assert running.done[not is_published :] == ["drain", "a step"]


@pytest.mark.parametrize("outage", [None, Outage("no answer", NOW, NOW)])
def test_trouble_of_sinks_and_schedules_is_told_and_does_not_stop_the_clock(
    running: Running, outage: Outage | None
) -> None:
    run: Any = running.supervisor._run
    told = list[str]()
    run.tell = told.append
    layout, later = running.tables.layout, NOW + timedelta(minutes=15)
    run.progress = JobProgress("p", "fused", 1, NOW, layout, updated=NOW, clock=lambda: later)
    run.job, run.task.once = "fused", True
    run.control.observe_pause = run.catch_up.run_rest = lambda: None
    run.publications = SimpleNamespace(stuck={}, trouble="publish out: it is down")
    run.runtime.stages = SimpleNamespace(trouble="gold/hours is damaged")
    running.supervisor._savepoints.trouble = "no savepoint"
    stream = stream_of(outage, remark="there is no folder", set_aside=2)
    running.supervisor.streams = [stream]
    running.supervisor._check()
    said = [
        "there is no folder",
        "publish out: it is down",
        "gold/hours is damaged",
        "no savepoint",
    ]
    away = "no answer, for 15 min (1 attempt); the driver keeps trying"
    assert run.progress.trouble == "; ".join([away, *said] if outage else said)
    assert run.progress.updated == (NOW if outage else later)
    assert told == ([f"{away.replace('15 min', '0 s')}, and nothing is lost"] if outage else [])
    assert run.progress.sources["b"].set_aside == 2


def test_requests_wait_for_no_batch_that_an_outage_delays(running: Running) -> None:
    """Otherwise the supervising thread would hang as long as the batch, and hear no stop. Only
    replays write bronze, so the others do not wait for the source."""
    run: Any = running.supervisor._run
    running.publish()
    document = ReplayDocument("b", 0, 0, 1, "a test")
    layout = running.tables.layout
    asked = request_replay(layout, "r1", document, pa.table({"value": [b""]}), NOW)
    layout.storage.write(asked.beside, b"")  # it is damaged, so it is removed when it is taken in
    send_request(layout, "drain", {}, NOW)
    running.supervisor.streams = [stream_of(Outage("no answer", NOW, NOW))]
    with run.runtime.bronze["b"].lock:  # a batch is read
        taking = threading.Thread(target=running.supervisor._take_in, daemon=True)
        taking.start()
        taking.join(10)
        assert not taking.is_alive()
    assert waiting_requests(layout) == (asked,)
    assert running.done == ["drain", "a step"]
    running.supervisor._take_in()
    assert waiting_requests(running.tables.layout) == (), (
        "between batches, an outage delays nothing"
    )


@pytest.mark.parametrize(
    ("path", "waits"),
    [
        ("bronze/b", {"batch", "stage"}),
        ("_headgate/files/b", {"batch", "stage", "listing"}),
        ("silver/s", {"batch"}),
        ("late/one", {"batch"}),
    ],
)
def test_maintenance_waits_for_what_writes_the_table(
    running: Running, path: str, waits: set[str]
) -> None:
    """A listing writes the files log, also while no batch runs."""
    run: Any = running.supervisor._run
    stream = stream_of()
    stream.input.listing_lock = threading.RLock()
    running.supervisor.streams = [stream]
    locks: dict[str, Any] = {
        "stage": run.runtime.bronze["b"].lock,
        "listing": stream.input.listing_lock,
        "batch": run.control.batch_lock._lock,
    }

    def is_free(lock: Any) -> bool:
        taken: bool = lock.acquire(blocking=False)
        if taken:
            lock.release()
        return taken

    taken = dict[str, bool]()

    def look() -> None:
        taken.update({name: not is_free(lock) for name, lock in locks.items()})

    with running.supervisor._turn_of(path):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert {name for name, is_taken in taken.items() if is_taken} >= waits
    assert ("stage" in waits) == taken["stage"]
    assert all(map(is_free, locks.values()))
