"""A driver: takes the lease, fences, catches up, then runs micro-batches until told to stop."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from headgate.failpoints import failpoint
from headgate.jobs import session
from headgate.jobs.errors import StopRequested
from headgate.jobs.intake import Intake
from headgate.jobs.lease import Lease
from headgate.jobs.medallion import Medallion
from headgate.jobs.operations import close_all_windows, finish_open_operation
from headgate.jobs.planning import ends_path, planned_end
from headgate.jobs.progress import Progress
from headgate.sources import reference
from headgate.sources.files import FilesIntake
from headgate.spec.model import Pipeline
from headgate.storage.documents import write_document
from headgate.storage.layout import Layout
from headgate.storage.ownership import LAYERS
from headgate.storage.stopping import stop_requested
from headgate.tables.errors import FencedError

POLL = 0.25  # seconds between looks at stop requests, the lease and the upstream
TRIGGER = "250 milliseconds"
LIST_EVERY = 1.0  # seconds between listings of the landing folder


@dataclass(frozen=True)
class Task:
    """What a driver is asked to do. ``layers`` are those it writes: all of them is *fused*;
    ``once`` ends when everything the source has now is absorbed."""

    pipeline: Pipeline
    root: str
    layers: Sequence[str] = LAYERS
    once: bool = False
    close_windows: bool = False
    take_over: bool = False
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
        self._batch = threading.Lock()
        self._failure: BaseException | None = None
        self._position = 0

    def stop(self) -> None:
        """End after the current micro-batch."""
        self._stop.set()

    def run(self) -> None:
        """Work until done or stopped. Raises HeadgateError with what to do next."""
        epoch = self._lease.take(take_over=self._task.take_over)
        try:
            spark = session.start(
                f"headgate-{self._task.pipeline.name}",
                cores=self._task.cores,
                scratch=self._scratch(epoch),
                jars=self._task.jars,
            )
            try:
                self._work(spark, epoch)
            finally:
                spark.stop()
        finally:
            self._lease.release()
            shutil.rmtree(self._scratch(epoch), ignore_errors=True)

    def _scratch(self, epoch: int) -> Path:
        """Spark's scratch files and its checkpoint: local, disposable, of this run only."""
        return Path(self._layout.storage.uri(Layout.checkpoint(self._name, epoch)))

    @property
    def _name(self) -> str:
        return "fused" if len(self._task.layers) == len(LAYERS) else self._task.layers[0]

    def _work(self, spark: SparkSession, epoch: int) -> None:
        medallion = Medallion(spark, self._task.pipeline, self._layout, self._task.layers)
        medallion.create()
        medallion.fence(epoch)
        self._progress = Progress.begin(self._task.pipeline, self._layout, self._name, epoch)
        medallion.catch_up(_now())
        finish_open_operation(self._layout, medallion, _now)
        self._stream(spark, medallion, epoch)
        if self._task.close_windows and not self._stop.is_set():
            medallion.catch_up(_now())
            close_all_windows(self._layout, medallion, _now)
        self._progress.finish(medallion)
        self._report(self._progress)

    def _stream(self, spark: SparkSession, medallion: Medallion, epoch: int) -> None:
        feed = self._feed(spark, medallion)
        self._position = feed.position
        feed.poll(final=self._task.once)
        self._publish(feed)
        query = self._start(spark, feed, medallion, epoch)
        try:
            self._supervise(query, feed)
        finally:
            with self._batch:
                query.stop()
        self._raise_failure(query)

    def _feed(self, spark: SparkSession, medallion: Medallion) -> BronzeFeed | TableFeed:
        if "bronze" not in self._task.layers:
            return TableFeed(medallion)
        medallion.files_log.load()
        files = FilesIntake(
            self._task.pipeline.source, medallion.files_log, str(self._task.pipeline.file)
        )
        return BronzeFeed(Intake(spark, files, medallion.bronze, _now))

    def _publish(self, feed: BronzeFeed | TableFeed) -> None:
        write_document(
            self._layout.storage, ends_path(self._name), {"ends": feed.ends(self._position)}
        )

    def _start(
        self,
        spark: SparkSession,
        feed: BronzeFeed | TableFeed,
        medallion: Medallion,
        epoch: int,
    ) -> StreamingQuery:
        checkpoint = f"{Layout.checkpoint(self._name, epoch)}/spark"

        def batch(_: DataFrame, number: int) -> None:
            with self._batch:
                try:
                    self._check()
                    end = planned_end(self._layout.storage, checkpoint, number)
                    feed.absorb(self._position, end)
                    failpoint("bronze.absorbed")
                    medallion.catch_up(_now())
                    self._position = end
                    self._progress.batch_done(medallion, feed.backlog(end))
                    self._report(self._progress)
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
        trigger = {"availableNow": True} if self._task.once else {"processingTime": TRIGGER}
        return writer.trigger(**trigger).foreachBatch(batch).start()  # type: ignore[arg-type]

    def _check(self) -> None:
        if self._lease.is_lost:
            raise FencedError(
                f"{self._task.pipeline.name}: another driver has taken the lease",
                remedy=f"headgate status {self._task.pipeline.name}",
            )
        if self._stop.is_set():
            raise StopRequested

    def _supervise(self, query: StreamingQuery, feed: BronzeFeed | TableFeed) -> None:
        """Until the query ends, a stop is asked for or the lease is lost."""
        listed = time.monotonic()
        while query.isActive:
            if stop_requested(self._layout, self._progress.since):
                self._stop.set()
            if self._stop.is_set() or self._lease.is_lost:
                return
            if not self._task.once and time.monotonic() - listed >= feed.every:
                listed = time.monotonic()
                feed.poll(final=False)
                self._publish(feed)
                self._progress.idle(feed.backlog(self._position))
            query.awaitTermination(POLL)

    def _raise_failure(self, query: StreamingQuery) -> None:
        if self._failure is not None and not isinstance(self._failure, StopRequested):
            raise self._failure
        if self._lease.is_lost:
            self._check()
        if (error := query.exception()) is not None and not isinstance(
            self._failure, StopRequested
        ):
            raise error


class BronzeFeed:
    """Batches come from the source."""

    every = LIST_EVERY

    def __init__(self, intake: Intake) -> None:
        self._intake = intake

    @property
    def position(self) -> int:
        return self._intake.position

    def poll(self, *, final: bool) -> None:
        """List what is new; ``final``: wait until nothing is settling any more."""
        while self._intake.list_new() and final:
            time.sleep(POLL)

    def ends(self, after: int) -> list[int]:
        return self._intake.ends(after)

    def backlog(self, after: int) -> tuple[int, int]:
        return self._intake.backlog(after)

    def absorb(self, start: int, end: int) -> None:
        self._intake.absorb(start, end)


class TableFeed:
    """Batches come from the table above: each asks only to catch up with it."""

    every = POLL

    def __init__(self, medallion: Medallion) -> None:
        self._medallion = medallion

    @property
    def position(self) -> int:
        return 0

    def _upstream(self) -> int:
        if "silver" in self._medallion.layers:
            return self._medallion.bronze.table.refresh().n
        return min((g.silver.refresh().n for g in self._medallion.gold.values()), default=0)

    def poll(self, *, final: bool) -> None:
        pass

    def ends(self, after: int) -> list[int]:
        n = self._upstream()
        return [n] if n > after else []

    def backlog(self, after: int) -> tuple[int, int]:
        return max(0, self._upstream() - after), 0

    def absorb(self, start: int, end: int) -> None:
        pass


def _now() -> datetime:
    return datetime.now(UTC)
