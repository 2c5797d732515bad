"""A streaming query over one input, and the thread that lists this input."""

from __future__ import annotations

import math
import threading
import time

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from headgate.driver import planning
from headgate.driver.batch_runner import BatchRunner
from headgate.driver.errors import StopRequested
from headgate.driver.job_input import JobInput
from headgate.driver.run import DriverRun
from headgate.driver.run_control import BatchLock
from headgate.lake.control.driver_requests import asked_to_skip, has_skipped
from headgate.lake.storage.documents import write_document
from headgate.lake.storage.layout import Layout

POLL = 0.25  # seconds between two looks of the listing thread
FED_FOR = 10.0
"""For so many seconds after new input, the source is listed at each look, so that further input
waits less. A slow listing is repeated less often: it takes at most a tenth of the time."""
TRIGGER = "250 milliseconds"
MOST_PLANNED = 1000
_LISTING_ENDS = 5.0  # seconds to wait for a listing when the run ends


class InputStream:
    """``name`` is that of the source, or of the job if its input are tables. One stream does not
    wait for another: it lists on a thread of its own, and Spark runs its batches on another one.

    ``is_ready`` is set once the input was listed, or if that has failed: then the query may start.
    ``error`` is what has ended the listing thread."""

    def __init__(self, run: DriverRun, name: str, input: JobInput) -> None:
        self.name, self.input, self._run = name, input, run
        self._lock = BatchLock()
        self.batches = BatchRunner(run, name, input, self._lock)
        self.is_ready = threading.Event()
        self.error: BaseException | None = None
        self.query: StreamingQuery | None = None
        self._id = run.job if name == run.job else f"{run.job}-{name}"
        self._ending = threading.Event()
        self._listed = self._fed = -math.inf
        self._listing_took = 0.0
        # A thread whose listing does not return must not keep the process from its end.
        self._thread = threading.Thread(target=self._keep_listing, name=f"list {name}", daemon=True)

    def begin(self) -> None:
        """Open and list the input, and then list it again and again, on the stream's own thread."""
        self._thread.start()

    def start(self) -> None:
        """Start the query."""
        run, storage = self._run, self._run.layout.storage
        checkpoint = f"{Layout.checkpoint(run.job, run.epoch)}/spark-{self.name}"

        def batch(_: DataFrame, number: int) -> None:
            self.batches.run(lambda: planning.planned_end(storage, checkpoint, number))

        stream = (
            run.spark.readStream.format(planning.FORMAT)
            .option("ends", storage.uri(self._ends))
            .option("start", str(self.batches.position))
        )
        writer = stream.load().writeStream.queryName(f"{run.task.pipeline.name}_{self._id}")
        writer = writer.option("checkpointLocation", storage.uri(checkpoint))
        self.query = writer.trigger(processingTime=TRIGGER).foreachBatch(batch).start()

    @property
    def _ends(self) -> str:
        """The path of the document that the reference source reads."""
        return Layout.document(f"ends-{self._id}")

    @property
    def is_active(self) -> bool:
        """Whether the stream goes on, or has not begun."""
        return self.error is None and (self.query is None or self.query.isActive)

    @property
    def is_done(self) -> bool:
        """Whether a run with ``once`` needs nothing more from this input."""
        is_listed = self.is_ready.is_set() and self.is_active
        return is_listed and (self.input.failure is not None or self.input.has_ingested_all())

    @property
    def has_input(self) -> bool:
        """Whether the input has something to read, or had new input a short time ago."""
        return time.monotonic() - self._fed < FED_FOR or self.input.pending() > 0

    def end(self) -> None:
        """End the query after its running batch. ``RunControl.end`` must have been called."""
        self._ending.set()
        self._lock.end(lambda: self.query.stop() if self.query else None)
        self._thread.join(_LISTING_ENDS)
        self.input.close()

    @property
    def failure(self) -> BaseException | None:
        """What has ended the stream, unless it was a request."""
        for error in (self.batches.failure, self.error):
            if error is not None and not isinstance(error, StopRequested):
                return error
        # A signal to all processes of the driver also ends the one that plans batches: if Spark
        # asks it once more before the query is stopped, the query fails without a failed batch.
        was_asked_to = self.batches.failure is not None or self._run.control.is_stopping
        return self.query.exception() if self.query and not was_asked_to else None

    def _keep_listing(self) -> None:
        try:
            self.input.begin()
            self.input.poll(final=self._run.task.once)
            self.plan()
            self.is_ready.set()
            polled = time.monotonic()
            while not self._ending.wait(POLL):
                now = time.monotonic()
                if now - polled >= self.input.every:
                    polled = now
                    self._skip()
                    if not self._run.task.once:
                        self.list()
                    self.plan()
                elif self._is_fed(now) and self.list():
                    self.plan()
        except StopRequested:  # while the source did not answer
            return
        except BaseException as error:
            if not self._ending.is_set():  # else a listing may fail because its client was closed
                self.error = error
        finally:
            self.is_ready.set()

    def list(self) -> bool:
        """List the input. Returns whether there is something to read."""
        began = time.monotonic()
        self.input.poll(final=False)
        self._listed = time.monotonic()
        self._listing_took = self._listed - began
        is_there = self.input.pending() > 0
        if is_there:
            self._fed = self._listed
        return is_there

    def _is_fed(self, now: float) -> bool:
        """Whether the source had new input a short time ago, and may be listed again."""
        if self._run.task.once or now - self._fed >= FED_FOR:
            return False
        return now - self._listed >= 10 * self._listing_took

    def plan(self) -> None:
        """Write the offsets at which batches may end; none while the pipeline is paused."""
        control = self._run.control
        if self._run.writes_bronze:
            control.observe_pause()
        pending = 0 if control.pause_latch.is_closed else min(self.input.pending(), MOST_PLANNED)
        ends = [self.batches.position + number for number in range(1, pending + 1)]
        write_document(self._run.layout.storage, self._ends, {"ends": ends})

    def _skip(self) -> None:
        """Carry out a request to skip files that are set aside."""
        layout = self._run.layout
        wanted = asked_to_skip(layout) if self._run.writes_bronze else None
        if wanted is not None and wanted.source == self.name:
            self.input.skip(wanted)
            has_skipped(layout)
