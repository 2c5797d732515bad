"""Supervises the streams of a job: their queries, stop requests, maintenance and savepoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from headgate.driver.errors import StopRequested
from headgate.driver.idle_sources import IdleSources
from headgate.driver.input_stream import InputStream
from headgate.driver.job_input import UpstreamTables
from headgate.driver.loading import PATIENCE, Loading
from headgate.driver.maintaining import Maintaining
from headgate.driver.operating import (
    requests_for_now,
    take_in_requests,
    written_by,
)
from headgate.driver.outages import OutageLines
from headgate.driver.pipeline_sources import source_loops
from headgate.driver.run import DriverRun
from headgate.driver.run_control import held
from headgate.driver.schedules import ScheduledLateReplays, ScheduledSavepoints
from headgate.errors import HeadgateError, joined_messages
from headgate.flow.sources.errors import joined_error
from headgate.lake.control.driver_reports import Outage, SourceReport, about_source

POLL = 0.25  # seconds between checks of stop requests, the lease and the queries
CHECK_EVERY = 1.0  # seconds between checks of everything else


def run_batches(run: DriverRun) -> None:
    """Run micro-batches until the job's input is processed (``once``) or the run ends.

    Raises the error that ended a batch, and FencedError if the lease was lost. A run with ``once``
    processes the input of the other sources; then it raises the error of those that are held.
    """
    run.say("looking for input")
    supervisor = StreamSupervisor(run)
    supervisor.supervise(streams_of(run, supervisor.waits))
    if run.task.once and not run.control.is_stopping:
        supervisor.require_all()


def streams_of(run: DriverRun, waits: Callable[[str, Outage], None]) -> Sequence[InputStream]:
    """A stream for each source, or one for the upstream tables of the job. While a source does not
    answer, ``waits`` is called repeatedly, with its name, by the thread that lists it."""
    task, graph = run.task, run.runtime.graph
    if not run.writes_bronze:
        tables = run.runtime.upstream()
        by_source = {
            source: [t.name for t in tables if source in graph.sources_of(t.name)]
            for source in run.runtime.bronze
        }
        return (InputStream(run, run.job, UpstreamTables(tables, by_source)),)
    loops = source_loops(
        *(run.spark, run.layout, run.runtime, run.clock),
        cores=task.cores,
        accept_gap=task.accept_gap,
        once=task.once,
        check=run.control.check_requests,
        waits=waits,
    )
    return tuple(InputStream(run, name, loop) for name, loop in loops.items())


class StreamSupervisor:
    """Supervises the streams on one thread. Each stream has threads of its own."""

    def __init__(self, run: DriverRun) -> None:
        self._run = run
        self._savepoints = ScheduledSavepoints(run.layout, run.task.pipeline)
        self._late_replays = ScheduledLateReplays(run.layout, run.task.pipeline)
        self._loading = Loading(run)
        self._idle = IdleSources(run.runtime)
        self._outages: dict[str, OutageLines] = {}
        self.streams: Sequence[InputStream] = ()

    def waits(self, source: str, outage: Outage) -> None:
        """Called by the thread that lists a source while this does not answer."""
        self._run.progress.waits(source, outage)
        self._tell_outage(source, outage)
        self._run.control.check_requests()

    def _tell_outage(self, name: str, outage: Outage | None) -> None:
        """``name`` is that of a stream; empty for a load."""
        lines = self._outages.setdefault(name, OutageLines())
        if (line := lines.next(outage, self._run.clock())) is not None:
            sources = self._run.runtime.pipeline.sources
            self._run.tell(about_source(name, line, sources) if name in sources else line)

    def supervise(self, streams: Sequence[InputStream]) -> None:
        """Start the streams, and supervise them until they end."""
        self.streams, control = streams, self._run.control
        for stream in streams:
            stream.batches.reports = self._reports
            stream.begin()
        try:
            self._until_end()
        except StopRequested:  # while this thread has waited for a batch
            pass
        finally:
            control.end()
            with ExitStack() as ends:
                ends.callback(self._loading.close)
                for stream in streams:
                    ends.callback(stream.end)
        for stream in self.streams:
            if (failure := stream.failure) is not None:
                raise failure
        control.require_lease()

    def require_all(self) -> None:
        """Raises the error of the sources that are held, if there are any."""
        failed = self._failed()
        if not failed:
            return
        self._run.catch_up.run()
        self._run.progress.sources_ready(self._reports())
        raise joined_error(failed, self._run.runtime.pipeline.sources)

    def _until_end(self) -> None:
        """Supervise until a stream ends, the run must end, or all input is processed."""
        run, control = self._run, self._run.control
        maintaining = Maintaining(
            *(run.layout, run.task.pipeline, run.job, run.runtime.owned()),
            *(self._turn_of, run.epoch, run.clock),
            run.runtime.damaged.require_none,
        )
        checked = time.monotonic()
        while all(stream.is_active for stream in self.streams):
            control.observe_stop_requests()
            if control.is_ending:
                return
            self._start_listed()
            self._require_one()
            if run.task.once and self._is_done():
                return
            if not any(stream.query for stream in self.streams):
                self.streams[0].is_ready.wait(POLL)
                continue
            if time.monotonic() - checked >= self._every:
                checked = time.monotonic()
                self._check()
            if run.writes_bronze:
                self._savepoints.run_due(run.clock())
                self._late_replays.run_due(run.clock())
            maintaining.step()
            if not self._loading.step(self._reports, self._has_input):
                control.wait(POLL)

    @property
    def _every(self) -> float:
        return CHECK_EVERY if self._run.writes_bronze else self.streams[0].input.every

    def _start_listed(self) -> None:
        """Start the query of each input that was listed."""
        run = self._run
        for stream in self.streams:
            if stream.query is not None or not stream.is_ready.is_set() or not stream.is_active:
                continue
            reports = self._with_holds(stream.input.reports())
            run.progress.sources_ready(reports)
            if stream.input.outage is None and stream.input.failure is None:
                self._tell_outage(stream.name, None)
            backlogs = [report.backlog for report in reports.values()]
            found = [backlog for backlog in backlogs if backlog is not None and backlog.count]
            if found and run.writes_bronze:
                said = f"found {found[0]} to read"
                run.say(about_source(stream.name, said, run.runtime.pipeline.sources))
            elif found:  # a job that does not write bronze also counts batches it has processed
                run.say("looking for batches")
            else:
                run.report(run.progress)
            stream.start()

    def _failed(self) -> dict[str, HeadgateError]:
        """The errors of the sources that are held."""
        held = {name: hold.error for name, hold in self._run.runtime.held.items()}
        unread = {s.name: s.input.failure for s in self.streams if s.input.failure is not None}
        return held | unread

    def _require_one(self) -> None:
        """Raises the error of the sources if all of them are held."""
        failed = self._failed()
        if failed.keys() >= self._run.runtime.bronze.keys():
            raise joined_error(failed, self._run.runtime.pipeline.sources)

    def _is_done(self) -> bool:
        """Whether a run with ``once`` may end. While bronze is rebuilt, its loads and requests
        wait. So the rebuild is published first; otherwise gold would lack the history until the
        next run."""
        run = self._run
        if not all(stream.is_done for stream in self.streams):
            return False
        if run.runtime.reread:
            with run.control.batch_lock.between_batches():
                run.catch_up.run()
        if self._loading.is_open():
            return False
        self._take_in()
        return True

    def _check(self) -> None:
        run, lock = self._run, self._run.control.batch_lock
        for stream in self.streams:
            self._tell_outage(stream.name, stream.input.outage)
        self._tell_outage("", self._loading.outage)
        if not run.writes_bronze:
            with lock.between_batches():
                run.catch_up.run(one_step=True)
        self._take_in()
        is_new = False
        if run.writes_bronze and self._idle.watches:
            is_new = self._idle.step(run.runtime.records_read(), self._reports(), run.clock())
        with lock.if_free() as free:
            # A job that does not write bronze has already caught up above.
            if free and is_new:
                run.catch_up.run(one_step=True)
            elif free and run.writes_bronze:
                run.catch_up.run_rest()
            if free:
                run.progress.stuck = run.publications.stuck
            is_idle = free and not any(stream.batches.is_running for stream in self.streams)
            news = run.progress.idle(
                self._reports(),
                run.runtime if is_idle else None,
                run.control.pause_latch.paused_since,
                self._also(),
                self._loading.outage,
            )
        if news:
            run.report(run.progress)

    def _reports(self) -> dict[str, SourceReport]:
        runtime = self._run.runtime
        reports = {name: SourceReport() for name in runtime.held if name in runtime.bronze}
        for stream in self.streams:
            reports.update(stream.input.reports())
        return self._with_holds(reports)

    def _with_holds(self, reports: Mapping[str, SourceReport]) -> dict[str, SourceReport]:
        """What is known of sources, and why their tables cannot go on."""
        held = self._run.runtime.held
        return {
            name: replace(report, failure=held[name].failure)
            if name in held and report.failure is None
            else report
            for name, report in reports.items()
        }

    def _has_input(self) -> bool:
        return any(stream.has_input for stream in self.streams)

    def _take_in(self) -> None:
        """Take waiting requests into bronze, and bring all tables up to bronze. During an outage,
        this waits for no batch, which may take long to fail. If a source that replays write is not
        free, other requests do not wait for it."""
        run = self._run
        if not (requests := requests_for_now(run.layout, run.runtime)):
            return
        for sources in (written_by(requests), frozenset[str]()):
            with self._between_batches(sources) as is_free:
                if not is_free:
                    continue
                if take_in_requests(run.layout, run.runtime, run.clock, run.say, sources):
                    run.catch_up.run(one_step=True)
                    run.progress.batch_done(run.runtime, self._reports())
                    run.report(run.progress)
                return

    @contextmanager
    def _between_batches(self, sources: Collection[str]) -> Iterator[bool]:
        """Take the bronze stages of some sources, and the tables, between batches. Yields whether
        they are taken: a source that does not answer or that is slow does not keep this thread from
        other work."""
        run, control = self._run, self._run.control
        with ExitStack() as locks:
            for stream in (each for each in self.streams if each.name in sources):
                lock, patience = run.runtime.bronze[stream.name].lock, PATIENCE
                within = 0 if stream.input.outage else patience
                if not locks.enter_context(held(lock, control.check_requests, within)):
                    yield False
                    return
            locks.enter_context(control.batch_lock.between_batches())
            yield True

    @contextmanager
    def _turn_of(self, path: str) -> Iterator[None]:
        """Take everything that a batch or a listing uses to write a table. Raises StopRequested."""
        run, node = self._run, self._run.runtime.graph[path]
        of_source = [s for s in self.streams if node.layer == "bronze" and s.name == node.name]
        with ExitStack() as locks:
            for stream in of_source:
                stage = run.runtime.bronze[stream.name]
                for lock in (stage.lock, stream.input.listing_lock):
                    locks.enter_context(held(lock, run.control.check_requests))
            locks.enter_context(run.control.batch_lock.between_batches())
            yield

    def _also(self) -> str | None:
        """The trouble for which the tables do not wait."""
        run, scheduled = self._run, (self._savepoints.trouble, self._late_replays.trouble)
        holds = run.runtime.held.items()
        logs = (f"{n}: {each.error.message}" for n, each in holds if n not in run.runtime.bronze)
        tables = run.publications.trouble, run.runtime.stages.trouble, *logs
        return joined_messages((*tables, *scheduled))
