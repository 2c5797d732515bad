"""Logs the state of a stream at the end of a run."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from headgate.airflow.operators.stream_task import StreamTask
from headgate.airflow.task_state import state_of
from headgate.declaration.quantities import plural
from headgate.errors import HeadgateError
from headgate.lake.control.driver_reports import last_failure
from headgate.lake.control.driver_requests import stop_asked
from headgate.supervision.progress_text import progress_line
from headgate.supervision.supervisor import condition_of

if TYPE_CHECKING:
    from airflow.sdk import Context

    from headgate.supervision.launcher import Stream


class StopReport(StreamTask):
    """Logs the condition of the stream, its ledger and its savepoints. Fails if the task ``of``
    failed, or did not run because an earlier task failed: the last task decides the state of a
    run."""

    def __init__(self, *, of: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.of = of

    def execute(self, context: Context) -> None:
        for text in self._lines(self._stream, datetime.now(UTC)):
            self.log.info(text)
        task = context["ti"]
        state = state_of(task.dag_id, task.run_id, self.of)
        if state == "failed":
            raise AirflowFailException(f"{self.of} failed: its log says why")
        if state == "upstream_failed":
            raise AirflowFailException(f"{self.of} did not run: a task before it failed")

    def _lines(self, stream: Stream, now: datetime) -> Iterator[str]:
        from headgate.history.savepoints.store import savepoints

        jobs = self._launcher.probe(stream, now)
        failure = last_failure(stream.layout)
        found = condition_of(jobs, stop_asked(stream.layout), failure)
        yield f"{stream.name} is {found}"
        if found == "failed" and failure is not None:
            yield f"exit code {failure.code}: {failure.reason}\n{failure.remedy}"
        yield from (progress_line(job, now) for job in jobs)
        if jobs:
            yield from self._ledger(stream)
        kept = savepoints(stream.layout)
        yield plural(len(kept), "savepoint") + (f", the newest: {kept[0].id}" if kept else "")

    def _ledger(self, stream: Stream) -> Iterator[str]:
        from headgate.insight.ledger import balance

        try:
            account = balance(stream.layout, self._declared())
        except HeadgateError as error:
            yield f"the ledger cannot be read: {error.text(stream.place)}"
            return
        yield "the ledger balances" if account.balanced else "the ledger does not balance:"
        yield from map(str, account.differences)
