"""Maintenance that a running job does on request, on the tables that it writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from headgate.commands import pipeline_command, shell_command
from headgate.declaration.model import Pipeline
from headgate.driver.errors import StopRequested
from headgate.errors import HeadgateError
from headgate.history.maintenance.report import MaintenanceReport
from headgate.history.maintenance.requests import (
    MaintenanceAnswer,
    MaintenanceRequest,
    requested_maintenance,
    write_answer,
)
from headgate.history.maintenance.steps import TurnOf, compact_tables, vacuum_tables
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.errors import CommitRefusedError, FencedError
from headgate.lake.tables.table import Table

LEAST = timedelta(minutes=5)
"""The shortest time that removed files are kept while a job runs, even if a request has a shorter
one. A savepoint that is being taken, or a ledger that compares rows, may still read these files."""


class Maintaining:
    """``turn_of`` takes everything that another thread needs to write a table. A request is for the
    jobs up to an epoch; ``epoch`` is that of this job. ``require_sound`` raises damage that was
    found when the tables were opened: a vacuum could remove what a repair needs."""

    def __init__(
        self,
        layout: Layout,
        pipeline: Pipeline,
        job: str,
        tables: Sequence[Table],
        turn_of: TurnOf,
        epoch: int,
        clock: Callable[[], datetime],
        require_sound: Callable[[], None] = lambda: None,
    ) -> None:
        self._layout = layout
        self._pipeline = pipeline
        self._job = job
        self._tables = tables
        self._turn_of = turn_of
        self._clock = clock
        self._epoch = epoch
        self._require_sound = require_sound
        self._last = ""
        self._answer: MaintenanceAnswer | None = None
        self._steps: Iterator[MaintenanceReport | None] = iter(())

    def step(self) -> None:
        """Begin a new request or continue the current one, for a few seconds at most, so that
        batches can run in between. The supervising thread calls this repeatedly.

        Failed maintenance does not end the job. The requester gets the error. Raises FencedError
        and CommitRefusedError: then another driver owns the tables and this job must end. Raises
        StopRequested if the run ends while this waits for a batch.
        """
        try:
            if self._answer is None:
                self._begin()
            elif (report := next(self._steps)) is not None:
                self._tell(self._answer.with_one(report))
        except StopIteration:
            self._end()
        except (FencedError, CommitRefusedError, StopRequested):
            raise
        except HeadgateError as error:
            self._end(error)
        except Exception as error:
            message = f"{type(error).__name__}: {error}"
            self._end(
                HeadgateError(message, f"{shell_command('doctor')}, {pipeline_command('logs')}")
            )

    def _begin(self) -> None:
        request = requested_maintenance(self._layout)
        if request is None or request.epoch < self._epoch or request.id == self._last:
            return
        self._last = request.id
        self._tell(MaintenanceAnswer(request.id, request.what))
        self._steps = self._work(request)

    def _work(self, request: MaintenanceRequest) -> Iterator[MaintenanceReport | None]:
        self._require_sound()
        around = self._layout, self._pipeline, self._tables
        if request.what == "compact":
            return compact_tables(*around, self._turn_of, self._clock)
        keep_for = max(request.keep_for, LEAST)
        return vacuum_tables(*around, keep_for, self._turn_of, self._clock)

    def _tell(self, answer: MaintenanceAnswer) -> None:
        self._answer = answer
        write_answer(self._layout, self._job, answer)

    def _end(self, error: HeadgateError | None = None) -> None:
        answer, self._answer, self._steps = self._answer, None, iter(())
        if answer is None:
            return
        if error is not None:
            answer = replace(
                answer, error=error.message, remedy=error.remedy, exit_code=error.exit_code
            )
        write_answer(self._layout, self._job, replace(answer, is_done=True))
