"""Carries out loads of history in bronze's job, in steps between two batches."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from headgate.declaration.contracts.source import connector_of
from headgate.driver.errors import StopRequested
from headgate.driver.run import DriverRun
from headgate.driver.run_control import held
from headgate.driver.source_loop import SourceLoop, cause_of_failure
from headgate.errors import HeadgateError, is_disk_full
from headgate.failpoints import failpoint
from headgate.flow.bronze.stage import BronzeStage
from headgate.flow.sources.errors import SourceUnreachableError
from headgate.flow.sources.micro_batches import SourceBatch, SourceContext
from headgate.flow.sources.records import MovedRecords
from headgate.history.loads import requests
from headgate.history.loads.replay_planner import ReplayPlanner
from headgate.history.loads.requests import LoadRequest
from headgate.lake.control.driver_reports import Outage, SourceReport
from headgate.lake.tables.decisions import ControlTable
from headgate.lake.tables.errors import CommitRefusedError, FencedError
from headgate.lake.tables.load import Load
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import State
from headgate.machine.jvm import has_ended

LOOK_EVERY = 1.0  # seconds between checks for requests
PATIENCE = 5.0  # seconds to wait for a batch that is being read, until other work is looked at


@dataclass(frozen=True)
class LoadStep:
    """The last step of a load: its times in seconds, and how many records it has read."""

    began: float
    ended: float
    rows: int


def may_begin_step(
    now: float, last: LoadStep | None, *, share: float, rate: int | None, has_input: bool
) -> bool:
    """Whether the next step may begin. ``has_input`` means that the stream has input, or had some a
    moment ago. Then a load takes at most the ``share`` of the time, and the stream has the rest."""
    if last is None:
        return True
    if rate is not None and now - last.began < last.rows / rate:
        return False
    took = last.ended - last.began
    return not has_input or now - last.ended >= took * (1 / share - 1)


class LoadWriter:
    """Commits the batches of a load."""

    def __init__(self, stage: BronzeStage, request: LoadRequest) -> None:
        self._stage, self._request = stage, request

    @property
    def lock(self) -> AbstractContextManager[object]:
        return self._stage.lock

    def refresh(self) -> State:
        return self._stage.refresh()

    @property
    def load(self) -> Load | None:
        """The load as of bronze's newest commit; None before its first batch."""
        return BronzePayload.of(self.refresh()).load(self._request.id)

    def position(self, state: State) -> BronzePayload:
        """Where the load continues."""
        payload = BronzePayload.of(state)
        load = payload.load(self._request.id)
        return replace(payload, offsets=load.offsets if load else self._request.plan.begins)

    def ingest(self, batch: SourceBatch, now: datetime) -> State:
        """As ``BronzeStage.load``."""
        request = self._request
        load = BronzePayload.of(self.refresh()).load(request.id)
        if load is None:
            load = Load(request.id, request.number, 0, {}, 0)
        moved = MovedRecords(batch.records, load.shift, request.plan.details.get("folder"))
        return self._stage.load(load, replace(batch, records=moved), now)


class _Opened:
    """A load that this run carries out."""

    def __init__(
        self,
        run: DriverRun,
        request: LoadRequest,
        is_shared: Callable[[], bool],
    ) -> None:
        runtime, task = run.runtime, run.task
        source = runtime.pipeline.sources[request.source]
        self.id = request.id
        self.writer = LoadWriter(runtime.bronze[request.source], request)
        self.planner = ReplayPlanner(run.layout, runtime.pipeline, request)
        context = SourceContext(
            *(run.spark, runtime.pipeline.name, runtime.pipeline.file, source),
            tables={},
            epoch=run.epoch,
            clock=run.clock,
            cores=task.cores,
            check=run.control.check_requests,
            is_shared=is_shared,
        )
        folder = requests.load_folder(run.layout, request.id)
        plan = replace(request.plan, ends=request.ends)
        connector = connector_of(source)
        self.loop = SourceLoop(
            *(request.source, lambda at: connector.loading(context, at, plan, folder)),
            *(self.writer, run.clock),
            limit=connector.unreachable_after(source.reads) if task.once else None,
        )


class Loading:
    """Used by the supervising thread. If the history of a load cannot be read, or its late rows
    cannot be folded, it is decided that the load is stopped, and why, and the driver goes on.
    A history that does not answer is tried again later. What a new driver may overcome ends this
    one, and the load stays open: a lost lease, a refused commit, a JVM that has ended, a full disk,
    and in a run with ``once`` a history that does not answer."""

    def __init__(self, run: DriverRun) -> None:
        self._run = run
        self._control = ControlTable.of(run.layout.storage, run.task.pipeline.name)
        self._opened: _Opened | None = None
        self._last: LoadStep | None = None
        self._looked = -math.inf
        self._is_blocked = self._is_shared = False
        self._request: LoadRequest | None = None

    def is_open(self) -> bool:
        """Whether there is an open load that this run can continue. It cannot while a gold table
        lacks the load's rows because another job writes the table or a gate holds it."""
        return self._look() is not None and not self._is_blocked

    def step(
        self,
        reports: Callable[[], Mapping[str, SourceReport]],
        stream_has_input: Callable[[], bool],
    ) -> bool:
        """Take the next step of the oldest open load, if it may be taken now. ``stream_has_input``
        returns whether the stream has input, or had some a short time ago. Returns whether a step
        was taken; if not, the caller waits a little."""
        now = time.monotonic()
        if self._request is None and now - self._looked < LOOK_EVERY:
            return False
        if (request := self._look()) is None:
            return False
        has_input = stream_has_input()
        if not self._may_begin(request, now, has_input):
            return False
        with self._turn(request.source, has_input) as has_turn:
            if not has_turn or self._run.control.is_ending:
                return False
            # A large step would use up the rate of a long time, and then wait for as long.
            self._is_shared = has_input or request.rate is not None
            began, rows = time.monotonic(), self._rows(request)
            try:
                if not self._take(request, reports):
                    return False
            except StopRequested:  # while the source did not answer
                return False
            self._last = LoadStep(began, time.monotonic(), self._rows(request) - rows)
            return True

    @property
    def outage(self) -> Outage | None:
        """Why the history of the load does not answer; None if it does."""
        return self._opened.loop.outage if self._opened else None

    def close(self) -> None:
        if self._opened is not None:
            self._opened.loop.close()
            self._opened = None

    def _look(self) -> LoadRequest | None:
        run, self._looked = self._run, time.monotonic()
        is_free = run.writes_bronze and not run.control.pause_latch.is_closed
        loads = requests.loads_of(self._control.refresh()) if is_free else ()
        left_out = run.runtime.undecidable | run.runtime.damaged.sources
        own = (e for e in loads if e.source in run.runtime.bronze and e.source not in left_out)
        self._request = requests.next_open_load(own)
        if self._opened and (self._request is None or self._request.id != self._opened.id):
            self.close()
        return self._request

    def _may_begin(self, request: LoadRequest, now: float, has_input: bool) -> bool:
        share, rate = request.share, request.rate
        return may_begin_step(now, self._last, share=share, rate=rate, has_input=has_input)

    @contextmanager
    def _turn(self, source: str, has_input: bool) -> Iterator[bool]:
        """Take the bronze stage of a source between two batches; yields whether it was taken. While
        the stream has input, this waits for the running batch, so that the load gets its share."""
        stage, control = self._run.runtime.bronze[source], self._run.control
        lock, patience = control.batch_lock, PATIENCE if has_input else 0
        with held(stage.lock, control.check_requests, patience) as has_turn:
            if not has_turn:
                yield False
                return
            with lock.between_batches() if has_input else lock.if_free() as is_free:
                pass  # tables of other sources go on while the load is read
            yield is_free

    def _rows(self, request: LoadRequest) -> int:
        held = self._run.runtime.bronze[request.source].refresh()
        load = BronzePayload.of(held).load(request.id)
        return load.rows if load else 0

    def _take(
        self, request: LoadRequest, reports: Callable[[], Mapping[str, SourceReport]]
    ) -> bool:
        """Returns whether there was something to do."""
        run, opened, began = self._run, self._opened, time.monotonic()
        bronze = run.runtime.bronze[request.source]
        before = bronze.refresh().n
        try:
            if opened is None:
                opened = self._opened = _Opened(run, request, lambda: self._is_shared)
            load = opened.writer.load
            if not (is_read := load is not None and request.is_read(load)):
                if not opened.loop.may_ingest:
                    return False
                run.say(f"load {request.id}: reading")
                opened.loop.ingest()
                if self.outage is not None:
                    return False
        except (FencedError, CommitRefusedError, StopRequested, SourceUnreachableError):
            raise
        except Exception as error:  # of any reader: the stream continues without the load
            # After a commit, the index of ids in memory lacks the batch: a new driver reads it.
            if bronze.refresh().n > before or is_disk_full(error) or has_ended(run.spark):
                raise
            self._stop(request, error)
            return True
        if load is not None and is_read:
            if request.until is None:
                with run.control.batch_lock.between_batches():
                    return self._fold(request, opened.planner, load)
            # Bronze has as much of it as before it was read again.
            self.close()
            self._decide(request, wish=request.then, until=None)
            return True
        failpoint("load.ingested")
        with run.control.batch_lock.between_batches():
            run.catch_up.run(one_step=True)
            opened.loop.batch_took(timedelta(seconds=time.monotonic() - began))
            run.progress.batch_done(run.runtime, reports())
            run.report(run.progress)
        return True

    def _fold(self, request: LoadRequest, planner: ReplayPlanner, load: Load) -> bool:
        """Request the next replay of late rows once all tables have carried out the last one.
        Returns False while a table has not."""
        run = self._run
        self._is_blocked = False
        if planner.behind(load):
            run.catch_up.run()
            self._is_blocked = bool(planner.behind(load))
            return not self._is_blocked
        if (document := planner.next_replay(load)) is None:
            self._decide(request, wish="done")
            return True
        run.say(f"load {request.id}: folding late rows")
        run.runtime.decide_operation("late_replay", document, run.clock())
        failpoint("load.replay_intended")
        run.catch_up.run(one_step=True)
        return True

    def _decide(self, request: LoadRequest, **changes: Any) -> None:
        runtime, now = self._run.runtime, self._run.clock()
        runtime.decide(
            lambda position: requests.decide_load_change(
                runtime.control, request.id, changes, position, now
            )
        )

    def _stop(self, request: LoadRequest, error: Exception) -> None:
        self.close()
        why = error.message if isinstance(error, HeadgateError) else cause_of_failure(error)
        self._decide(request, wish="stopped", why=why)
        self._run.say(f"load {request.id} is stopped: {why}")
