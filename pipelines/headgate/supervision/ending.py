"""How the last run of a pipeline ended: a finished ``--once`` is no failure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from headgate.storage.failure import Failure
from headgate.supervision.job_state import JobState

Ended = Literal["finished", "stopped", "failed"]
"""How the last run ended: it has absorbed all there was, somebody ended it, or it failed."""


def how_ended(
    jobs: Sequence[JobState], stop_asked: datetime | None, failure: Failure | None
) -> Ended | None:
    """How the last run of ``jobs`` ended. A stop that was asked for after a failure is the newer
    word."""
    if any(job.is_alive for job in jobs):
        return None
    if failure is not None and (stop_asked is None or stop_asked < failure.at):
        return "failed"
    if not jobs or any(job.state == "dead" for job in jobs):
        return None
    return "finished" if all(job.finished for job in jobs) else "stopped"
