"""Health checks of a stream as a task, so that existing alerts fire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from headgate.airflow.operators.stream_task import StreamTask
from headgate.commands import rendered
from headgate.insight.status.limits import CHECKS, Check, Limits

if TYPE_CHECKING:
    from airflow.sdk import Context

RESULTS = "health"
"""The XCom key of the results, which are written even if the task fails: the violations of each
check."""


class HealthCheck(StreamTask):
    """Makes all the ``checks`` in one process. Fails without retry if there are violations; each
    check has a line in the log and an entry in the XCom ``health``. A stream that was stopped or
    paused on request is healthy."""

    def __init__(
        self, *, checks: Sequence[Check] = CHECKS, limits: Limits | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.checks = tuple(checks)
        self.limits = limits or Limits()

    def execute(self, context: Context) -> None:
        results = self._results(datetime.now(UTC)).items()
        found = {check: [rendered(text) for text in wrong] for check, wrong in results}
        for check, wrong in found.items():
            if wrong:
                self.log.error("%s, %s: %s", self.name, check, "; ".join(wrong))
            else:
                self.log.info("%s, %s: well", self.name, check)
        context["ti"].xcom_push(RESULTS, found)
        if problems := [f"{check}: {'; '.join(wrong)}" for check, wrong in found.items() if wrong]:
            raise AirflowFailException(f"{self.name} is not well\n" + "\n".join(problems))

    def _results(self, now: datetime) -> Mapping[Check, tuple[str, ...]]:
        from headgate.insight.status.health import HealthContext, results

        stream = self._stream
        jobs = self._launcher.probe(stream, now)
        context = HealthContext(self._declared(), stream.layout, jobs, now)
        return results(self.checks, context, self.limits)
