"""What a supervising task keeps from one start of a driver to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from headgate.lake.control.driver_reports import Failure
from headgate.supervision.job_state import JobState
from headgate.supervision.supervisor import RestartPolicy, is_crash


@dataclass(frozen=True)
class Watch:
    """The token of the claim, the end of this run, the times of crashes, the epoch of the last
    driver that they count, and the times of failures of the machine, which are no crashes."""

    token: str
    until: datetime
    crashes: tuple[datetime, ...] = ()
    counted: int | None = None
    of_machine: tuple[datetime, ...] = ()

    def kept(self) -> dict[str, Any]:
        """The watch as Airflow keeps it while the task is deferred."""
        return {
            "token": self.token,
            "until": self.until.isoformat(),
            "crashes": [at.isoformat() for at in self.crashes],
            "counted": self.counted,
            "of_machine": [at.isoformat() for at in self.of_machine],
        }

    @staticmethod
    def of(
        token: str,
        until: str,
        crashes: Sequence[str],
        counted: int | None,
        of_machine: Sequence[str],
    ) -> Watch:
        """The watch that was ``kept``."""
        times, of = (tuple(map(datetime.fromisoformat, each)) for each in (crashes, of_machine))
        return Watch(token, datetime.fromisoformat(until), times, counted, of)

    def after(
        self,
        failure: Failure | None,
        jobs: Sequence[JobState],
        budget: RestartPolicy,
        now: datetime,
    ) -> Watch:
        """The watch after the driver of ``jobs`` has ended with ``failure``."""
        epoch = epoch_of(jobs)
        if is_crash(failure):
            crashes = (*budget.recent(self.crashes, now), now)
            return replace(self, crashes=crashes, counted=epoch)
        failures = (*budget.recent(self.of_machine, now), now)
        return replace(self, of_machine=failures, counted=epoch)


def epoch_of(jobs: Sequence[JobState]) -> int | None:
    """The epoch of the last driver; None if there was none."""
    return max((job.epoch for job in jobs), default=None)
