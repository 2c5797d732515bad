"""A driver: takes the lease, fences, catches up, then runs micro-batches until it is stopped."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from headgate.driver import stream
from headgate.driver.error_translation import translate_error
from headgate.driver.lease import Lease, highest_readable_epoch
from headgate.driver.loading import Loading
from headgate.driver.opening import open_tables
from headgate.driver.operating import (
    finish_replays,
    take_in_requests,
)
from headgate.driver.progress import JobProgress
from headgate.driver.publishing import Publications
from headgate.driver.refusing import require_apart
from headgate.driver.run import CatchUp, DriverRun
from headgate.driver.run_control import RunControl
from headgate.driver.runtime import PipelineRuntime
from headgate.driver.session import (
    LocalSessions,
    SessionProvider,
    remove_orphaned,
    scratch_folder,
    stop_session,
)
from headgate.driver.task import Task
from headgate.errors import joined_messages
from headgate.flow.operations import drain
from headgate.flow.publish.circuit_breaker import Breaker
from headgate.flow.sources.errors import joined_error
from headgate.history.savepoints.clone import require_finished_clone
from headgate.lake.control.driver_reports import SourceProgress, about_source
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.errors import FencedError
from headgate.machine.jvm import has_ended


class Driver:
    """One run of a task. ``stop`` may be called from any thread or signal handler. ``say`` is
    called with the name of each stage that begins, ``report`` when a stage is done, ``tell`` with
    lines about outages."""

    def __init__(
        self,
        task: Task,
        report: Callable[[JobProgress], None] = lambda _: None,
        say: Callable[[str], None] = lambda _: None,
        sessions: SessionProvider | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._task = task
        self._report, self._say, self._tell = report, say, tell
        self._sessions = sessions or LocalSessions(task.cores, task.jars)
        self._layout = Layout.of(task.root, task.pipeline.name)
        self._lease = Lease(self._layout, task.layers, task.pipeline.name)
        self._control = RunControl(self._layout, task.pipeline.name, self._lease)
        self._is_done = False
        self._sources: Mapping[str, SourceProgress] = {}

    @property
    def left(self) -> str | None:
        """What a run with ``once`` has not done because it was stopped, such as "3 files are
        unread"; None if it has done everything, and for other runs."""
        if self._is_done or not (self._task.once and self._control.is_stopping):
            return None
        backlogs = {name: source.backlog for name, source in self._sources.items()}
        unread = list[str]()
        for name, backlog in backlogs.items():
            if backlog is None:
                unread.append(about_source(name, "the input was not listed", backlogs))
            elif backlog.count:
                verb = "is" if backlog.count == 1 else "are"
                unread.append(about_source(name, f"{backlog.number} {verb} unread", backlogs))
        done = "all input is read, but not all tables, loads and publications are done"
        return joined_messages(unread) or (done if backlogs else "the input was not listed")

    @property
    def was_asked_to_stop(self) -> bool:
        """Whether a stop was requested, by a signal or a document."""
        return self._control.is_asked_to_stop()

    def stop(self) -> None:
        """End after the current micro-batch."""
        self._control.stop()

    def record_end(self) -> None:
        """Record that a person has ended this driver, and not the system. Raises OSError."""
        self._control.record_end()

    def finish(self) -> None:
        """End after the current micro-batch as if input had ended: windows are drained if the
        task has ``drain``."""
        self._control.finish()

    def run(self) -> None:
        """Work until done or stopped. Raises HeadgateError with what to do next."""
        require_finished_clone(self._layout)
        require_apart(self._task.pipeline, self._layout)
        highest = highest_readable_epoch
        with self._lease.held(take_over=self._task.take_over, highest=highest) as epoch:
            scratch = scratch_folder(self._layout, self._task.job, epoch)
            try:
                self._run(epoch, scratch)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)

    def _run(self, epoch: int, scratch: Path) -> None:
        if (spark := self._start(scratch)) is None:
            return
        try:
            self._work(spark, epoch)
        except Exception as error:
            self._lease.failed = True
            if self._lease.is_lost and not isinstance(error, FencedError):
                # Another driver owns the tables: this matters more than the first error.
                raise self._control.fenced() from error
            gone = has_ended(spark)
            if known := translate_error(error, self._layout, java_has_ended=gone):
                raise known from error
            raise
        finally:
            stop_session(spark)

    def _start(self, scratch: Path) -> SparkSession | None:
        """The session; None if the signal that stops this driver ended Spark while it started. No
        work has begun then."""
        self._say("starting Spark")
        try:
            return self._sessions.start(f"headgate-{self._task.pipeline.name}", scratch)
        except Exception:
            if self._control.is_stopping:
                return None
            raise

    def _work(self, spark: SparkSession, epoch: int) -> None:
        self._say("opening tables")
        task = self._task
        runtime = PipelineRuntime(spark, task.pipeline, self._layout, task.layers)
        open_tables(runtime, self._layout, epoch, _now(), task.rebuild)
        finish_replays(self._layout, runtime, _now, self._say)
        if task.only_open:
            rereads = task.once and self._bring_level(runtime)
            if task.loads or rereads:
                self._load(self._begin(spark, runtime, epoch))
            if held := runtime.held:
                errors = {name: hold.error for name, hold in held.items()}
                raise joined_error(errors, task.pipeline.sources)
            self._is_done = True
            return
        remove_orphaned(self._layout, task.layers, epoch)
        run = self._begin(spark, runtime, epoch)
        try:
            self._process(run)
        finally:
            run.publications.close()

    def _begin(self, spark: SparkSession, runtime: PipelineRuntime, epoch: int) -> DriverRun:
        """Create the run after its tables are open. From here on it has a status document."""
        task, control = self._task, self._control
        if "bronze" in task.layers:
            control.observe_pause()
        progress = JobProgress.begin(
            task.pipeline,
            self._layout,
            task.job,
            epoch,
            runtime,
            paused=control.pause_latch.paused_since,
        )
        breaker = Breaker(self._layout, task.pipeline, without=runtime.damaged.sources)
        publications = Publications(runtime.publications, time.monotonic, breaker.why_open)
        return DriverRun(
            *(task, self._layout, epoch, spark, runtime),
            catch_up=CatchUp(runtime, publications, _now),
            publications=publications,
            progress=progress,
            control=control,
            report=self._report,
            say=self._say,
            tell=self._tell,
            clock=_now,
        )

    def _bring_level(self, runtime: PipelineRuntime) -> bool:
        """Take in the waiting requests, and bring all tables up to bronze. Returns whether bronze
        was read again; if so, its loads must be read again, too."""
        rereads = bool(runtime.reread)
        if rereads:  # its requests are taken in once the new bronze is published
            runtime.catch_up(_now())
        take_in_requests(self._layout, runtime, _now, self._say)
        runtime.catch_up(_now())
        return rereads

    def _load(self, run: DriverRun) -> None:
        """Carry out the open loads; the source is not read."""
        control, loading = self._control, Loading(run)
        try:
            while not control.is_ending:
                with control.batch_lock.between_batches():  # it may be paused, or cancelled
                    take_in_requests(self._layout, run.runtime, _now, self._say)
                if not loading.is_open():
                    break
                control.observe_stop_requests()
                if not loading.step(dict, lambda: False):
                    if loading.outage is not None:
                        self._say(loading.outage.what)
                    control.wait(stream.POLL)
        finally:
            loading.close()
            run.publications.close()
        run.progress.finish(run.runtime, finished=not control.is_stopping)

    def _drain(self, runtime: PipelineRuntime) -> None:
        """Request a drain of all tables, unless they are drained, or nothing may be decided for
        some of them."""
        is_drained = drain.is_drained(runtime.control.refresh(), runtime.position())
        if not is_drained and not runtime.undecidable:
            self._say("draining windows")
            runtime.decide_operation(drain.NAME, {}, _now())

    def _process(self, run: DriverRun) -> None:
        """Do all work of the run, from the first catch-up to the last report."""
        control, runtime = self._control, run.runtime
        take_in_requests(self._layout, runtime, _now, self._say)
        self._say("catching up")
        run.catch_up.run(one_step=True)
        run.progress.caught_up(runtime)
        stream.run_batches(run)
        if run.task.drain and run.writes_bronze and not control.is_stopping:
            self._drain(runtime)
        if not control.is_stopping:
            run.catch_up.run()
        if runtime.stages.trouble is not None:
            self._say(runtime.stages.trouble)
        finished = run.task.once and not control.is_stopping
        run.progress.finish(runtime, finished=finished)
        self._is_done, self._sources = finished, run.progress.sources
        self._report(run.progress)
        if finished:
            self._is_done = run.publications.require_done(_now(), control.is_asked_to_stop)


def _now() -> datetime:
    return datetime.now(UTC)
