"""A driver: takes the lease, fences, catches up, then runs micro-batches until told to stop."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.commands import pipeline_command
from headgate.failpoints import failpoint
from headgate.jobs import session
from headgate.jobs.batch_lock import BatchLock
from headgate.jobs.errors import StopRequested
from headgate.jobs.failing import named
from headgate.jobs.feeds.choosing import feed_of
from headgate.jobs.feeds.feed import Feed
from headgate.jobs.lease import Lease
from headgate.jobs.maintaining import Maintaining
from headgate.jobs.opening import open_tables
from headgate.jobs.operations import intend_closing
from headgate.jobs.pause_latch import PauseLatch
from headgate.jobs.planning import ends_path, planned_end
from headgate.jobs.progress import Progress
from headgate.jobs.publishing import Publications
from headgate.jobs.runtime import PipelineRuntime
from headgate.jobs.savepointing import Schedule
from headgate.jobs.scratch import job_name, remove_left_behind, scratch_folder
from headgate.jobs.task import Task
from headgate.savepoints.clone import require_whole
from headgate.sources import reference
from headgate.storage.documents import write_document
from headgate.storage.layout import Layout
from headgate.storage.pausing import paused_since
from headgate.storage.stopping import stop_requested
from headgate.tables.errors import FencedError

POLL = 0.25  # seconds between looks at stop requests, the lease and the upstream
TRIGGER = "250 milliseconds"


class Driver:
    """One run of a task. ``stop`` may be called from any thread or signal handler. ``say`` gets the
    stage that begins; a report ends it."""

    def __init__(
        self,
        task: Task,
        report: Callable[[Progress], None] = lambda _: None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._task = task
        self._report = report
        self._say = say
        self._layout = Layout.of(task.root, task.pipeline.name)
        self._lease = Lease(self._layout, task.layers, task.pipeline.name)
        self._stop = threading.Event()
        self._finish = threading.Event()
        self._batch_lock = BatchLock()
        self._pause_latch = PauseLatch()
        self._failure: BaseException | None = None
        self._position, self._is_level = 0, True

    def stop(self) -> None:
        """End after the current micro-batch."""
        self._stop.set()

    def finish(self) -> None:
        """End after the current micro-batch as if input had ended: windows are closed if the
        task says so."""
        self._finish.set()

    def run(self) -> None:
        """Work until done or stopped. Raises HeadgateError with what to do next."""
        require_whole(self._layout)
        epoch = self._lease.take(take_over=self._task.take_over)
        scratch = scratch_folder(self._layout, self._name, epoch)
        try:
            self._say("starting Spark")
            spark = session.start(
                f"headgate-{self._task.pipeline.name}",
                cores=self._task.cores,
                scratch=scratch,
                jars=self._task.jars,
            )
            try:
                self._work(spark, epoch)
            except Exception as error:
                self._lease.failed = True
                if self._lease.is_lost and not isinstance(error, FencedError):
                    raise self._fenced() from error  # whatever broke, the tables are another's
                if (known := named(error, self._layout)) is not None:
                    raise known from error
                raise
            finally:
                spark.stop()
        finally:
            self._lease.release()
            shutil.rmtree(scratch, ignore_errors=True)

    @property
    def _name(self) -> str:
        return job_name(self._task.layers)

    def _work(self, spark: SparkSession, epoch: int) -> None:
        self._say("opening tables")
        runtime = PipelineRuntime(spark, self._task.pipeline, self._layout, self._task.layers)
        open_tables(runtime, self._layout, epoch, _now(), self._task.anew)
        if self._task.only_open:
            if self._task.once:
                runtime.catch_up(_now())
            return
        self._schedule = Schedule(self._layout, self._task.pipeline)
        remove_left_behind(self._layout, self._task.layers, epoch)
        if "bronze" in self._task.layers:
            self._pause_latch.set(paused_since(self._layout))
        self._progress = Progress.begin(
            self._task.pipeline,
            self._layout,
            self._name,
            epoch,
            runtime,
            cores=self._task.cores,
            paused=self._pause_latch.at_rest_since,
        )
        self._go_on(spark, runtime, epoch)

    def _go_on(self, spark: SparkSession, runtime: PipelineRuntime, epoch: int) -> None:
        self._publications = Publications(runtime.publications, time.monotonic)
        self._say("bringing the tables level")
        self._bring_level(runtime, beside=True)
        self._stream(spark, runtime, epoch)
        if self._task.drain and "bronze" in self._task.layers and not self._stop.is_set():
            self._say("closing windows")
            intend_closing(runtime, _now)
        if not self._stop.is_set():
            self._bring_level(runtime)
        finished = self._task.once and not self._stop.is_set()
        self._progress.finish(runtime, finished=finished)
        self._report(self._progress)
        if finished:
            self._publications.require_done(_now())

    def _bring_level(self, runtime: PipelineRuntime, *, beside: bool = False) -> None:
        """Catch up without new data, carry out what operations ask for, publish. ``beside`` as in
        ``PipelineRuntime.catch_up``: the rest follows between batches."""
        self._is_level = runtime.catch_up(_now(), beside=beside)
        self._publications.catch_up(_now())

    def _stream(self, spark: SparkSession, runtime: PipelineRuntime, epoch: int) -> None:
        self._say("looking for input")
        try:
            feed = feed_of(self._task, spark, runtime, self._waits, _now)
            self._position = feed.position
            feed.poll(final=self._task.once)
        except StopRequested:
            return
        if (backlog := feed.backlog(self._position)).count:
            self._say(f"found {backlog} to read")
        else:
            self._report(self._progress)
        self._publish(feed)
        query = self._start(spark, feed, runtime, epoch)
        self._progress.reached(feed.backlog(self._position))
        try:
            self._supervise(query, feed, runtime)
        finally:
            self._batch_lock.end(query.stop)
            feed.close()
        self._raise_failure(query)

    def _publish(self, feed: Feed) -> None:
        """Tell the stream how far it may go: nowhere while the pipeline is paused."""
        if "bronze" in self._task.layers:
            self._pause_latch.set(paused_since(self._layout))
        ends = [] if self._pause_latch.is_closed else feed.ends(self._position)
        write_document(self._layout.storage, ends_path(self._name), {"ends": ends})

    def _start(
        self, spark: SparkSession, feed: Feed, runtime: PipelineRuntime, epoch: int
    ) -> StreamingQuery:
        checkpoint = f"{Layout.checkpoint(self._name, epoch)}/spark"

        def batch(_: DataFrame, number: int) -> None:
            try:
                with self._pause_latch.passage(self._check), self._batch_lock.batch():
                    end = planned_end(self._layout.storage, checkpoint, number)
                    if end > self._position:  # a stream's first batch may be empty
                        self._micro_batch(feed, runtime, end)
            except BaseException as error:
                self._failure = error
                raise

        source = (
            spark.readStream.format(reference.FORMAT)
            .option("ends", self._layout.storage.uri(ends_path(self._name)))
            .option("start", str(self._position))
        )
        writer = source.load().writeStream.queryName(f"{self._task.pipeline.name}_{self._name}")
        writer = writer.option("checkpointLocation", self._layout.storage.uri(checkpoint))
        return writer.trigger(processingTime=TRIGGER).foreachBatch(batch).start()

    def _micro_batch(self, feed: Feed, runtime: PipelineRuntime, end: int) -> None:
        self._check()
        began, number = time.monotonic(), self._progress.n + 1
        self._say(f"batch {number}: reading")
        if not feed.absorb(self._position, end):
            self._say("")
            self._position = end
            return
        failpoint("bronze.absorbed")
        self._say(f"batch {number}: in bronze, on to silver and gold")
        self._bring_level(runtime, beside=True)
        self._position = end
        feed.batch_took(timedelta(seconds=time.monotonic() - began))
        self._progress.batch_done(runtime, feed.backlog(end))
        self._report(self._progress)

    def _check(self) -> None:
        if self._lease.is_lost:
            raise self._fenced()
        if self._stop.is_set() or self._batch_lock.is_ending:
            raise StopRequested

    def _fenced(self) -> FencedError:
        said = f"{self._task.pipeline.name}: another driver has taken the lease"
        return FencedError(said, remedy=pipeline_command("status"))

    def _waits(self, trouble: str) -> None:
        """For brokers that do not answer, maybe before there is a query to supervise."""
        if stop_requested(self._layout, self._progress.since):
            self._stop.set()
        if self._progress.waits(trouble):
            self._report(self._progress)
        self._check()

    def _supervise(self, query: StreamingQuery, feed: Feed, runtime: PipelineRuntime) -> None:
        """Until the query ends, a stop is asked for or the lease is lost."""
        maintaining = Maintaining(
            *(self._layout, self._task.pipeline, self._name, runtime.owned()),
            *(self._batch_lock, self._progress.since, _now),
        )
        listed = time.monotonic()
        while query.isActive:
            if stop_requested(self._layout, self._progress.since):
                self._stop.set()
            if self._stop.is_set() or self._finish.is_set() or self._lease.is_lost:
                return
            if self._task.once and feed.has_absorbed_all(self._position):
                return
            if time.monotonic() - listed >= feed.every:
                listed = time.monotonic()
                if not self._task.once:
                    feed.poll(final=False)
                self._publish(feed)
                if "bronze" not in self._task.layers:
                    with self._batch_lock.between_batches():
                        self._bring_level(runtime, beside=True)
                with self._batch_lock.if_free() as free:
                    # The other jobs have just done so above.
                    if free and "bronze" in self._task.layers:
                        self._bring_on(runtime)
                    news = self._progress.idle(
                        feed.backlog(self._position),
                        runtime if free else None,
                        self._trouble(feed),
                        self._pause_latch.at_rest_since,
                    )
                if news:
                    self._report(self._progress)
            if "bronze" in self._task.layers:
                self._schedule.keep(_now())
            maintaining.step()
            self._stop.wait(POLL)

    def _bring_on(self, runtime: PipelineRuntime) -> None:
        """What there is to do without new data: rebuilds, publications."""
        if self._is_level:
            self._publications.catch_up(_now())
        else:
            self._bring_level(runtime, beside=True)

    def _trouble(self, feed: Feed) -> str | None:
        troubles = feed.trouble, self._publications.trouble, self._schedule.trouble
        return "; ".join(said for said in troubles if said) or None

    def _raise_failure(self, query: StreamingQuery) -> None:
        was_asked_to = isinstance(self._failure, StopRequested)
        if self._failure is not None and not was_asked_to:
            raise self._failure
        if self._lease.is_lost:
            self._check()
        if (error := query.exception()) is not None and not was_asked_to:
            raise error


def _now() -> datetime:
    return datetime.now(UTC)
