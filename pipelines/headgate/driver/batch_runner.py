"""Running one micro-batch: from a range of the source to all tables of the job."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

from headgate.driver.job_input import JobInput
from headgate.driver.run import DriverRun
from headgate.failpoints import failpoint


class BatchRunner:
    """Called on the stream's thread. ``position`` is the number of planned batches that are done.
    ``failure`` is the error that ended a batch, if there was one."""

    def __init__(self, run: DriverRun, source: JobInput) -> None:
        self._run, self._source = run, source
        self.position = 0
        self.failure: BaseException | None = None

    def run(self, planned_end: Callable[[], int]) -> None:
        """Process the next batch, once the pipeline is not paused and the tables are free.

        Raises StopRequested if no further batch may begin, and the error of a batch that fails.
        """
        control = self._run.control
        try:
            with control.pause_latch.passage(control.check), control.batch_lock.batch():
                if (end := planned_end()) > self.position:  # a stream's first batch may be empty
                    self._process(end)
        except BaseException as error:
            self.failure = error
            raise

    def _process(self, end: int) -> None:
        run, source = self._run, self._source
        run.control.check()
        began = time.monotonic()
        number = max(each.n for each in run.progress.sources.values()) + 1
        if run.writes_bronze:
            run.say(f"batch {number}: reading")
        if not source.ingest():
            run.say("")
            self.position = end
            return
        failpoint("bronze.ingested")
        if run.writes_bronze:
            then = "" if run.job == "bronze" else "; next: silver and gold"
            run.say(f"batch {number}: committed to bronze{then}")
        else:
            run.say("processing what is committed upstream")
        run.catch_up.run(one_step=True)
        self.position = end
        source.batch_took(timedelta(seconds=time.monotonic() - began))
        run.progress.stuck = run.publications.stuck
        run.progress.batch_done(run.runtime, source.reports())
        run.report(run.progress)
