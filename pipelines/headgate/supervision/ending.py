"""How the last run of a pipeline ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from headgate.lake.control.failure import Failure
from headgate.lake.control.stopping import StopRequest
from headgate.supervision.job_state import JobState

Ended = Literal["finished", "stopped", "terminated", "failed"]
"""``finished``: the run processed all input (``--once``); ``stopped``: a person has stopped it;
``terminated``: a signal ended it after its batch, and nobody has asked for that; ``failed``."""


def how_ended(
    jobs: Sequence[JobState], stop_asked: StopRequest | None, failure: Failure | None
) -> Ended | None:
    """How the last run of ``jobs`` ended. A stop request after a failure overrides the failure."""
    if any(job.is_alive for job in jobs):
        return None
    if failure is not None and not (stop_asked and stop_asked.is_after(failure)):
        return "failed"
    if not jobs or any(job.state == "dead" for job in jobs):
        return None
    if all(job.finished for job in jobs):
        return "finished"
    was_asked = stop_asked is not None and all(stop_asked.is_for(job.epoch) for job in jobs)
    return "stopped" if was_asked else "terminated"
