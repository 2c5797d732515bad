"""Running one micro-batch of an input: from a range of the source to all tables of the job."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from headgate.driver.job_input import JobInput
from headgate.driver.run import DriverRun
from headgate.driver.run_control import BatchLock
from headgate.failpoints import failpoint
from headgate.lake.control.driver_reports import about_source


class BatchRunner:
    """Called on the stream's thread. ``name`` is that of the stream; ``lock`` is held by a batch.
    ``position`` is the number of planned batches that are done. ``is_running``: a batch may have
    been committed to bronze that is not in gold yet. ``failure`` is the error that ended a batch,
    if there was one. ``reports`` returns what is known of the sources after a batch."""

    def __init__(self, run: DriverRun, name: str, source: JobInput, lock: BatchLock) -> None:
        self._run, self._name, self._source, self._lock = run, name, source, lock
        self.position, self.is_running = 0, False
        self.reports = source.reports
        self.failure: BaseException | None = None

    def run(self, planned_end: Callable[[], int]) -> None:
        """Process the next batch, once the pipeline is not paused.

        Raises StopRequested if no further batch may begin, and the error of a batch that fails.
        """
        control = self._run.control
        try:
            with control.pause_latch.passage(control.check), self._lock.batch():
                if (end := planned_end()) > self.position:  # a stream's first batch may be empty
                    self.is_running = True
                    self._process(end)
        except BaseException as error:
            self.failure = error
            raise
        finally:
            self.is_running = False

    def _process(self, end: int) -> None:
        """Batches of several sources are read at the same time. Then one after the other brings the
        tables up to bronze."""
        run, source = self._run, self._source
        run.control.check()
        began, before = time.monotonic(), run.progress.sources.get(self._name)
        number = before.n + 1 if before else 1
        if run.writes_bronze:
            self._say(f"batch {number}: reading")
        if not source.ingest():
            self._say("")
            self.position = end
            return
        took = time.monotonic() - began
        failpoint("bronze.ingested")
        if run.writes_bronze:
            then = "" if run.job == "bronze" else "; next: silver and gold"
            self._say(f"batch {number}: committed to bronze{then}")
        else:
            self._say("processing what is committed upstream")
        with run.control.batch_lock.between_batches():
            began = time.monotonic()
            run.catch_up.run(one_step=True)
            self.position = end
            source.batch_took(timedelta(seconds=took + time.monotonic() - began))
            run.progress.stuck = run.publications.stuck
            run.progress.batch_done(run.runtime, self.reports())
            run.report(run.progress)

    def _say(self, what: str) -> None:
        sources = self._run.progress.sources
        named = what and self._name in sources
        self._run.say(about_source(self._name, what, sources) if named else what)
