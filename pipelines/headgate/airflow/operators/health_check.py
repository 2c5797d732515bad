"""One question about a stream's health, as an ordinary task: alerts that people have fire."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from headgate.airflow.operators.stream_task import StreamTask
from headgate.spec.load import load
from headgate.supervision.limits import Check, Limits

if TYPE_CHECKING:
    from airflow.sdk import Context


class HealthCheck(StreamTask):
    """Fails, for good, with what is wrong. ``check`` is one of ``supervision.limits.CHECKS``; a
    stream that somebody asked to stop or to pause is well."""

    def __init__(self, *, check: Check, limits: Limits | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.check = check
        self.limits = limits or Limits()

    def execute(self, context: Context) -> None:
        from headgate.supervision.health import Patient, ailments

        now, stream = datetime.now(UTC), self._stream
        jobs = self._launcher.probe(stream, now)
        patient = Patient(load(stream.file), stream.layout, jobs, now)
        found = ailments(self.check, patient, self.limits)
        if found:
            raise AirflowFailException(f"{self.name}, {self.check}: " + "; ".join(found))
        self.log.info("%s, %s: well", self.name, self.check)
