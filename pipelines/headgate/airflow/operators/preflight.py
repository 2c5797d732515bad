"""Checks, before a stream is started, what a start checks."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from headgate.airflow.connections import NoConnectionError
from headgate.airflow.operators.stream_task import StreamTask
from headgate.airflow.task_state import name_of
from headgate.airflow.triggers.stream_trigger import START_AGAIN
from headgate.commands import rendered
from headgate.errors import HeadgateError
from headgate.lake.control.claim import Claim, claim, claimed
from headgate.lake.control.driver_reports import Failure, last_failure, record_failure
from headgate.lake.control.driver_requests import stop_asked
from headgate.lake.storage.layout import Layout
from headgate.supervision.supervisor import NEEDS_A_PERSON, condition_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from headgate.supervision.preflight import StartProblem


class Preflight(StreamTask):
    """Runs ``headgate doctor`` for the pipeline, in the environment of a driver: with the
    declaration, the secrets and the root that will run.

    If the stream runs already, was stopped on request, or waits for a person, problems are only
    logged: ``supervise`` starts no driver. A problem that only a person can solve fails the run at
    once and is recorded as the failure of the stream; the next run waits until the stream is
    started. Other problems, such as a full disk, keep only a stream from starting that has never
    run: ``supervise`` starts one that has run for as long as it takes.
    """

    def execute(self, context: Context) -> None:
        stream, found = self._stream, self._problems()
        for each in found:
            self.log.warning("%s: %s\n%s", each.name, each.reason, each.remedy)
        if not found:
            self.log.info("%s: no problems found", self.name)
            return
        layout = stream.layout
        jobs, failure = self._launcher.probe(stream, datetime.now(UTC)), last_failure(layout)
        held, state = claimed(layout), condition_of(jobs, stop_asked(layout), failure)
        is_reported = failure is not None and held is not None and held.reported == failure.at
        if any(job.is_alive for job in jobs):
            self.log.info("%s: it runs", self.name)
        elif state == "resting" or (state == "failed" and is_reported):
            self.log.info("%s: it is not started. %s", self.name, rendered(START_AGAIN % self.name))
        elif jobs and not any(each.code in NEEDS_A_PERSON for each in found):
            self.log.info("%s: it has run before, so its start is tried", self.name)
        else:
            self._fail(layout, found, context)

    def _problems(self) -> tuple[StartProblem, ...]:
        from headgate.supervision.preflight import StartProblem, start_problems

        try:
            return start_problems(self._stream.file, self._stream.root, self._variables())
        except HeadgateError as error:
            name = "connections" if isinstance(error, NoConnectionError) else "doctor"
            return (StartProblem(name, error.message, error.remedy, error.exit_code, ()),)

    def _fail(self, layout: Layout, found: tuple[StartProblem, ...], context: Context) -> None:
        """Raises AirflowFailException if a person is needed, else AirflowException: Airflow tries
        again."""
        text = "\n".join(f"{each.name}: {each.reason}\n{each.remedy}" for each in found)
        first = next((each for each in found if each.code in NEEDS_A_PERSON), None)
        if first is None:
            raise AirflowException(text)
        now = datetime.now(UTC)
        record_failure(layout, Failure(first.code, first.reason, first.remedy, now, first.commands))
        held = claimed(layout) or Claim(uuid.uuid4().hex, name_of(context["ti"]), now, is_over=True)
        claim(layout, replace(held, reported=now))
        raise AirflowFailException(f"{text}\n{rendered(START_AGAIN % self.name)}")
