"""A driver: takes the lease, fences, catches up, then runs micro-batches until told to stop."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headgate.failpoints import failpoint
from headgate.jobs import session
from headgate.jobs.errors import StopRequested
from headgate.jobs.feeds.feed import Feed
from headgate.jobs.feeds.files import FilesFeed
from headgate.jobs.feeds.kafka import KafkaFeed, Surroundings
from headgate.jobs.feeds.upstream import UpstreamFeed
from headgate.jobs.gate import Gate
from headgate.jobs.lease import Lease
from headgate.jobs.medallion import Medallion
from headgate.jobs.operations import Openness, carry_out, intend_closing
from headgate.jobs.planning import ends_path, planned_end
from headgate.jobs.progress import Progress
from headgate.jobs.publishing import Publications
from headgate.jobs.scratch import job_name, remove_left_behind, scratch_folder
from headgate.jobs.turns import Turns
from headgate.sources import reference
from headgate.sources.files.intake import FilesIntake
from headgate.spec.model import Pipeline
from headgate.storage.documents import write_document
from headgate.storage.layout import Layout
from headgate.storage.ownership import LAYERS
from headgate.storage.pausing import paused_since
from headgate.storage.stopping import stop_requested
from headgate.tables.errors import FencedError

POLL = 0.25  # seconds between looks at stop requests, the lease and the upstream
TRIGGER = "250 milliseconds"


@dataclass(frozen=True)
class Task:
    """What a driver is asked to do. ``layers`` are those it writes: all of them is *fused*;
    ``once`` ends when everything the source has now is absorbed; ``accept_gap`` passes over what a
    topic has lost."""

    pipeline: Pipeline
    root: str
    layers: Sequence[str] = LAYERS
    once: bool = False
    close_windows: bool = False
    take_over: bool = False
    accept_gap: bool = False
    cores: int = 2
    jars: Sequence[Path] = ()


class Driver:
    """One run of a task. ``stop`` may be called from any thread or signal handler."""

    def __init__(self, task: Task, report: Callable[[Progress], None] = lambda _: None) -> None:
        self._task = task
        self._report = report
        self._layout = Layout.of(task.root, task.pipeline.name)
        self._lease = Lease(self._layout, task.layers, task.pipeline.name)
        self._stop = threading.Event()
        self._finish = threading.Event()
        self._turns = Turns()
        self._gate = Gate()
        self._failure: BaseException | None = None
        self._position = 0

    def stop(self) -> None:
        """End after the current micro-batch."""
        self._stop.set()

    def finish(self) -> None:
        """End after the current micro-batch as if input had ended: windows are closed if the
        task says so."""
        self._finish.set()

    def run(self) -> None:
        """Work until done or stopped. Raises HeadgateError with what to do next."""
        epoch = self._lease.take(take_over=self._task.take_over)
        scratch = scratch_folder(self._layout, self._name, epoch)
        try:
            spark = session.start(
                f"headgate-{self._task.pipeline.name}",
                cores=self._task.cores,
                scratch=scratch,
                jars=self._task.jars,
            )
            try:
                self._work(spark, epoch)
            finally:
                spark.stop()
        finally:
            self._lease.release()
            shutil.rmtree(scratch, ignore_errors=True)

    @property
    def _name(self) -> str:
        return job_name(self._task.layers)

    def _work(self, spark: SparkSession, epoch: int) -> None:
        medallion = Medallion(spark, self._task.pipeline, self._layout, self._task.layers)
        medallion.create()
        medallion.fence(epoch)
        remove_left_behind(self._layout, self._task.layers, epoch)
        self._openness = Openness(medallion)
        if "bronze" in self._task.layers:
            self._gate.set(paused_since(self._layout))
        self._progress = Progress.begin(
            self._task.pipeline,
            self._layout,
            self._name,
            epoch,
            medallion,
            cores=self._task.cores,
            paused=self._gate.at_rest_since,
        )
        self._publications = Publications(medallion.publications, time.monotonic)
        self._bring_level(medallion)
        self._stream(spark, medallion, epoch)
        if self._task.close_windows and "bronze" in self._task.layers and not self._stop.is_set():
            intend_closing(medallion, _now)
        if not self._stop.is_set():
            self._bring_level(medallion)
        self._progress.finish(medallion)
        self._report(self._progress)
        if self._task.once and not self._stop.is_set():
            self._publications.require_done(_now())

    def _bring_level(self, medallion: Medallion) -> None:
        """Catch up without new data, then finish what an operation left open: no batch may come
        between an intent and its end."""
        medallion.catch_up(_now())
        if "gold" in self._task.layers:
            carry_out(medallion, _now)
        self._publications.catch_up(_now())

    def _stream(self, spark: SparkSession, medallion: Medallion, epoch: int) -> None:
        try:
            feed = self._feed(spark, medallion)
            self._position = feed.position
            feed.poll(final=self._task.once)
        except StopRequested:
            return
        self._publish(feed)
        query = self._start(spark, feed, medallion, epoch)
        try:
            self._supervise(query, feed, medallion)
        finally:
            self._turns.end(query.stop)
            feed.close()
        self._raise_failure(query)

    def _feed(self, spark: SparkSession, medallion: Medallion) -> Feed:
        if "bronze" not in self._task.layers:
            return UpstreamFeed(medallion.upstream())
        if self._task.pipeline.source.kafka is not None:
            around = Surroundings(
                self._check, _now, cores=self._task.cores, accept_gap=self._task.accept_gap
            )
            return KafkaFeed(spark, self._task.pipeline, medallion.bronze, around)
        assert medallion.files_log is not None
        medallion.files_log.load()
        files = FilesIntake(
            self._task.pipeline.source, medallion.files_log, str(self._task.pipeline.file)
        )
        return FilesFeed(spark, files, medallion.bronze, _now)

    def _publish(self, feed: Feed) -> None:
        """Tell the stream how far it may go: nowhere while the pipeline is paused."""
        if "bronze" in self._task.layers:
            self._gate.set(paused_since(self._layout))
        ends = [] if self._gate.is_closed else feed.ends(self._position)
        write_document(self._layout.storage, ends_path(self._name), {"ends": ends})

    def _start(
        self,
        spark: SparkSession,
        feed: Feed,
        medallion: Medallion,
        epoch: int,
    ) -> StreamingQuery:
        checkpoint = f"{Layout.checkpoint(self._name, epoch)}/spark"

        def batch(_: DataFrame, number: int) -> None:
            try:
                with self._gate.passage(self._check), self._turns.batch():
                    end = planned_end(self._layout.storage, checkpoint, number)
                    if end > self._position:  # a stream's first batch may be empty
                        self._micro_batch(feed, medallion, end)
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

    def _micro_batch(self, feed: Feed, medallion: Medallion, end: int) -> None:
        self._check()
        self._wait_for_operations()
        began = time.monotonic()
        if not feed.absorb(self._position, end):
            self._position = end
            return
        failpoint("bronze.absorbed")
        self._bring_level(medallion)
        self._position = end
        feed.batch_took(timedelta(seconds=time.monotonic() - began))
        self._progress.batch_done(medallion, feed.backlog(end))
        self._report(self._progress)

    def _wait_for_operations(self) -> None:
        """Bronze's job, when gold is another process's: an open intent holds the next batch."""
        while "bronze" in self._task.layers and self._openness.is_open():
            self._check()
            time.sleep(POLL)

    def _check(self) -> None:
        if self._lease.is_lost:
            raise FencedError(
                f"{self._task.pipeline.name}: another driver has taken the lease",
                remedy=f"headgate status {self._task.pipeline.name}",
            )
        if self._stop.is_set() or self._turns.is_ending:
            raise StopRequested

    def _supervise(self, query: StreamingQuery, feed: Feed, medallion: Medallion) -> None:
        """Until the query ends, a stop is asked for or the lease is lost."""
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
                    with self._turns.between_batches():
                        self._bring_level(medallion)
                with self._turns.if_free() as free:
                    # The other jobs have just done so above.
                    if free and "bronze" in self._task.layers:
                        self._publications.catch_up(_now())
                    news = self._progress.idle(
                        feed.backlog(self._position),
                        medallion if free else None,
                        self._trouble(feed),
                        self._gate.at_rest_since,
                    )
                if news:
                    self._report(self._progress)
            self._stop.wait(POLL)

    def _trouble(self, feed: Feed) -> str | None:
        told = [said for said in (feed.trouble, self._publications.trouble) if said]
        return "; ".join(told) or None

    def _raise_failure(self, query: StreamingQuery) -> None:
        if self._failure is not None and not isinstance(self._failure, StopRequested):
            raise self._failure
        if self._lease.is_lost:
            self._check()
        if (error := query.exception()) is not None and not isinstance(
            self._failure, StopRequested
        ):
            raise error


def _now() -> datetime:
    return datetime.now(UTC)
