"""Supervises a stream: its query, its source, stop requests, maintenance and savepoints."""

from __future__ import annotations

import math
import time

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from headgate.driver import planning
from headgate.driver.batch_runner import BatchRunner
from headgate.driver.errors import StopRequested
from headgate.driver.job_input import JobInput, open_input
from headgate.driver.loading import Loading
from headgate.driver.maintaining import Maintaining
from headgate.driver.operating import has_requests, take_in_requests, takes_requests
from headgate.driver.outages import OutageLines
from headgate.driver.run import DriverRun
from headgate.driver.schedules import ScheduledLateReplays, ScheduledSavepoints
from headgate.errors import joined_messages
from headgate.lake.control.driver_reports import Outage, combined_outage
from headgate.lake.control.driver_requests import asked_to_skip, has_skipped
from headgate.lake.storage.documents import write_document
from headgate.lake.storage.layout import Layout

POLL = 0.25  # seconds between checks of stop requests, the lease and the query
FED_FOR = 10.0
"""For so many seconds after new input, the source is listed at each check, so that further input
waits less. A slow listing is repeated less often: it takes at most a tenth of the time."""
TRIGGER = "250 milliseconds"
MOST_PLANNED = 1000


def _ends_path(layer: str) -> str:
    """The path of the document that the reference source reads."""
    return Layout.document(f"ends-{layer}")


def run_batches(run: DriverRun) -> None:
    """Run micro-batches until the job's input is processed (``once``) or the run ends.

    Raises the error that ended a batch, and FencedError if the lease was lost.
    """
    run.say("looking for input")
    supervisor = StreamSupervisor(run)
    try:
        source = open_input(run, supervisor.waits)
        source.poll(final=run.task.once)
    except StopRequested:
        return
    supervisor.supervise(source, BatchRunner(run, source))


class StreamSupervisor:
    """Supervises the query on the thread that starts it. Batches run on the stream's thread."""

    def __init__(self, run: DriverRun) -> None:
        self._run = run
        self._savepoints = ScheduledSavepoints(run.layout, run.task.pipeline)
        self._late_replays = ScheduledLateReplays(run.layout, run.task.pipeline)
        self._loading = Loading(run)
        self._outages = OutageLines()
        self._listed = self._fed = -math.inf
        self._listing_took = 0.0

    def waits(self, source: str, outage: Outage) -> None:
        """Called while a source does not answer, before the query has started."""
        self._run.progress.waits(source, outage)
        self._tell_outage(outage)
        self._run.control.check_requests()

    def _tell_outage(self, outage: Outage | None) -> None:
        if (line := self._outages.next(outage, self._run.clock())) is not None:
            self._run.tell(line)

    def supervise(self, source: JobInput, batches: BatchRunner) -> None:
        """Start the query and supervise it until it ends."""
        run = self._run
        backlog = source.backlog()
        run.progress.sources_ready(source.reports())
        self._tell_outage(None)
        if backlog.count:
            # A job that does not write bronze counts all batches, also those that it has processed.
            run.say(f"found {backlog} to read" if run.writes_bronze else "looking for batches")
        else:
            run.report(run.progress)
        self._plan(source, batches)
        query = self._start(batches)
        try:
            self._until_end(query, source, batches)
        finally:
            run.control.batch_lock.end(query.stop)
            source.close()
            self._loading.close()
        self._raise_failure(query, batches.failure)

    def _plan(self, source: JobInput, batches: BatchRunner) -> None:
        """Write the offsets at which batches may end; none while the pipeline is paused."""
        run = self._run
        if run.writes_bronze:
            run.control.observe_pause()
        pending = 0 if run.control.pause_latch.is_closed else min(source.pending(), MOST_PLANNED)
        ends = [batches.position + number for number in range(1, pending + 1)]
        write_document(run.layout.storage, _ends_path(run.job), {"ends": ends})

    def _start(self, batches: BatchRunner) -> StreamingQuery:
        run, storage = self._run, self._run.layout.storage
        checkpoint = f"{Layout.checkpoint(run.job, run.epoch)}/spark"

        def batch(_: DataFrame, number: int) -> None:
            batches.run(lambda: planning.planned_end(storage, checkpoint, number))

        stream = (
            run.spark.readStream.format(planning.FORMAT)
            .option("ends", storage.uri(_ends_path(run.job)))
            .option("start", str(batches.position))
        )
        writer = stream.load().writeStream.queryName(f"{run.task.pipeline.name}_{run.job}")
        writer = writer.option("checkpointLocation", storage.uri(checkpoint))
        return writer.trigger(processingTime=TRIGGER).foreachBatch(batch).start()

    def _until_end(self, query: StreamingQuery, source: JobInput, batches: BatchRunner) -> None:
        """Supervise until the query ends, the run must end, or all input is processed."""
        run, control = self._run, self._run.control
        maintaining = Maintaining(
            *(run.layout, run.task.pipeline, run.job, run.runtime.owned()),
            *(control.batch_lock, run.epoch, run.clock),
        )
        polled = time.monotonic()
        while query.isActive:
            control.observe_stop_requests()
            if control.is_ending:
                return
            if run.task.once and self._is_done(source):
                return
            if time.monotonic() - polled >= source.every:
                polled = time.monotonic()
                self._poll(source, batches)
            elif self._is_fed(time.monotonic()) and self._list(source):
                self._plan(source, batches)
            if run.writes_bronze:
                self._savepoints.run_due(run.clock())
                self._late_replays.run_due(run.clock())
            maintaining.step()
            if not self._loading.step(source.reports, lambda: self._has_input(source)):
                control.wait(POLL)

    def _is_done(self, source: JobInput) -> bool:
        """Whether a run with ``once`` may end. While bronze is rebuilt, loads and requests wait. So
        the rebuild is published first; otherwise gold would lack the history until the next run."""
        run = self._run
        if not source.has_ingested_all():
            return False
        if run.writes_bronze and not takes_requests(run.runtime):
            with run.control.batch_lock.between_batches():
                run.catch_up.run()
        if self._loading.is_open():
            return False
        self._take_in(source)
        return True

    def _poll(self, source: JobInput, batches: BatchRunner) -> None:
        run, lock = self._run, self._run.control.batch_lock
        self._skip(source)
        if not run.task.once:
            self._list(source)
        self._plan(source, batches)
        self._tell_outage(combined_outage((source.outage, self._loading.outage)))
        if not run.writes_bronze:
            with lock.between_batches():
                run.catch_up.run(one_step=True)
        self._take_in(source)
        with lock.if_free() as free:
            # A job that does not write bronze has already caught up above.
            if free and run.writes_bronze:
                run.catch_up.run_rest()
            if free:
                run.progress.stuck = run.publications.stuck
            news = run.progress.idle(
                source.reports(),
                run.runtime if free else None,
                run.control.pause_latch.paused_since,
                self._also(),
                self._loading.outage,
            )
        if news:
            run.report(run.progress)

    def _skip(self, source: JobInput) -> None:
        """Carry out a request to skip files that are set aside."""
        layout = self._run.layout
        if self._run.writes_bronze and (wanted := asked_to_skip(layout)) is not None:
            source.skip(wanted)
            has_skipped(layout)

    def _list(self, source: JobInput) -> bool:
        """List the source. Returns whether there is something to read."""
        began = time.monotonic()
        try:
            source.poll(final=False)
        except StopRequested:  # while the source did not answer
            return False
        self._listed = time.monotonic()
        self._listing_took = self._listed - began
        is_there = source.pending() > 0
        if is_there:
            self._fed = self._listed
        return is_there

    def _has_input(self, source: JobInput) -> bool:
        """Whether the source has input, or had new input a short time ago."""
        return time.monotonic() - self._fed < FED_FOR or source.pending() > 0

    def _is_fed(self, now: float) -> bool:
        """Whether the source had new input a short time ago, and may be listed again."""
        if self._run.task.once or now - self._fed >= FED_FOR:
            return False
        return now - self._listed >= 10 * self._listing_took

    def _take_in(self, source: JobInput) -> None:
        """Take waiting requests into bronze, and bring all tables up to bronze. During an outage,
        this waits for no batch, which may take long to fail."""
        run, lock = self._run, self._run.control.batch_lock
        if has_requests(run.layout, run.runtime):
            with lock.if_free() if source.outage else lock.between_batches() as is_free:
                if is_free and take_in_requests(run.layout, run.runtime, run.clock, run.say):
                    run.catch_up.run(one_step=True)
                    run.progress.batch_done(run.runtime, source.reports())
                    run.report(run.progress)

    def _also(self) -> str | None:
        """The trouble for which the tables do not wait."""
        run, scheduled = self._run, (self._savepoints.trouble, self._late_replays.trouble)
        tables = run.publications.trouble, run.runtime.stages.trouble
        return joined_messages((*tables, *scheduled))

    def _raise_failure(self, query: StreamingQuery, failure: BaseException | None) -> None:
        control = self._run.control
        if failure is not None and not isinstance(failure, StopRequested):
            raise failure
        control.require_lease()
        # A signal to all processes of the driver also ends the one that plans batches: if Spark
        # asks it once more before the query is stopped, the query fails without a failed batch.
        was_asked_to = failure is not None or control.is_stopping
        if (error := query.exception()) is not None and not was_asked_to:
            raise error
