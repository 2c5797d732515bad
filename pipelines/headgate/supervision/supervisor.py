"""Decides what a supervisor does about a stream, from the states of its jobs.

Health means progress: a driver without progress is replaced like a dead one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from headgate.lake.control.driver_reports import Failure
from headgate.lake.control.driver_requests import StopRequest
from headgate.supervision.job_state import JobState, overall_state

StreamCondition = Literal[
    "absent",
    "starting",
    "running",
    "waiting",
    "paused",
    "resting",
    "failed",
    "ended",
    "dead",
    "stuck",
]
"""``absent``: it never ran; ``waiting``: it can read none of its sources, because they do not
answer and it keeps trying, or because a person has to act; ``resting``: it was asked to stop and
does not run, or is silent; it stays stopped until it is started; ``failed``: it ended for a reason
that only a person can remove, and stays stopped, too; ``ended``: it stopped without such a request;
``dead``: its process has died or is silent; ``stuck``: its process runs without progress."""

DOWN: tuple[StreamCondition, ...] = ("absent", "ended", "dead", "stuck")
"""The conditions in which a supervisor starts a driver."""

NEEDS_A_PERSON = frozenset({2, 3, 5})
"""Exit codes of failures that a restart cannot repair: the declaration or the command line is
wrong, the source changed or cannot be read, a table or a document is damaged."""


OF_THE_MACHINE = frozenset({8})
"""Exit codes of failures that end without a change of the pipeline: the machine lacks something,
such as space on the disk of the tables, or this disk is away."""


def is_crash(failure: Failure | None) -> bool:
    """Whether a driver that ended with ``failure`` has crashed. After a failure of the machine, it
    is started again for ever, at growing intervals."""
    return failure is None or failure.code not in OF_THE_MACHINE


@dataclass(frozen=True)
class Observation:
    """The state of a stream at a moment. ``fingerprint`` identifies its progress, and
    ``last_progress`` is when that last changed."""

    condition: StreamCondition
    fingerprint: str
    last_progress: datetime


def observe(
    jobs: Sequence[JobState],
    now: datetime,
    before: Observation | None,
    *,
    stop_asked: StopRequest | None,
    stuck_after: timedelta,
    failure: Failure | None = None,
) -> Observation:
    """Observe the stream at ``now``, after the observation ``before``. ``stop_asked`` is the last
    stop request, ``failure`` is why the last start failed."""
    fingerprint = "; ".join(f"{j.job} {j.epoch} {_moved(j)}" for j in jobs)
    last_progress = (
        now if before is None or before.fingerprint != fingerprint else before.last_progress
    )
    return Observation(
        _condition(jobs, now - last_progress > stuck_after, stop_asked, failure),
        fingerprint,
        last_progress,
    )


def _moved(job: JobState) -> str:
    """A driver that tries again to reach its sources makes progress: another one could not do
    more."""
    batch_ids = [source.n for source in job.sources.values()]
    return f"{batch_ids} {job.updated} {job.tried}"


def condition_of(
    jobs: Sequence[JobState], stop_asked: StopRequest | None, failure: Failure | None = None
) -> StreamCondition:
    """The condition at one moment. It does not show whether the stream makes progress."""
    return _condition(jobs, False, stop_asked, failure)


def _condition(
    jobs: Sequence[JobState],
    stands_still: bool,
    stop_asked: StopRequest | None,
    failure: Failure | None,
) -> StreamCondition:
    if _needs_a_person(jobs, stop_asked, failure):
        return "failed"
    state, holds = overall_state(jobs), stop_holds(jobs, stop_asked, failure)
    if holds and state in ("stopped", "dead", "stale"):
        return "resting"
    if not jobs:
        return "absent"
    if state == "stopped":
        return "ended"
    if state in ("dead", "stale"):
        return "dead"
    if state == "paused":
        return "paused"
    # An operation reports no progress and must not be ended for that.
    if any(job.operation for job in jobs):
        return "starting"
    if stands_still and not any(job.waits_for_a_person for job in jobs):
        return "stuck"
    if any(job.is_waiting for job in jobs):
        return "waiting"
    return "running" if all(job.is_open for job in jobs) else "starting"


def stop_holds(
    jobs: Sequence[JobState], stop_asked: StopRequest | None, failure: Failure | None = None
) -> bool:
    """Whether a stop that lasts was requested since the jobs began; if so, only a person starts the
    stream. If there was never a job, whether it was requested since the last start failed."""
    if stop_asked is None or not stop_asked.lasts:
        return False
    if not jobs:
        return failure is not None and stop_asked.is_after(failure)
    return all(stop_asked.is_for(job.epoch) for job in jobs)


SupervisorStep = Literal["watch", "start", "report"]


def supervisor_step(
    found: StreamCondition, failure: Failure | None, reported: datetime | None
) -> SupervisorStep:
    """What a supervisor does: start a driver if the stream is down; report a failure that needs a
    person, once; else watch. ``reported`` is the time of the failure that was reported last."""
    if found == "failed" and failure is not None:
        return "watch" if failure.at == reported else "report"
    return "start" if found in DOWN else "watch"


def _needs_a_person(
    jobs: Sequence[JobState], stop_asked: StopRequest | None, failure: Failure | None
) -> bool:
    if failure is None or failure.code not in NEEDS_A_PERSON:
        return False
    was_stopped_since = stop_asked is not None and stop_asked.is_after(failure)
    return not was_stopped_since and not any(job.is_alive for job in jobs)


@dataclass(frozen=True)
class RestartPolicy:
    """At most ``crashes`` restarts within a time. The pause before a restart is ``first``, then
    doubles up to ``longest``."""

    crashes: int = 5
    within: timedelta = timedelta(hours=1)
    first: timedelta = timedelta(seconds=5)
    longest: timedelta = timedelta(minutes=5)

    def recent(self, crashes: Iterable[datetime], now: datetime) -> tuple[datetime, ...]:
        return tuple(at for at in crashes if now - at < self.within)

    def is_spent(self, crashes: Iterable[datetime], now: datetime) -> bool:
        return len(self.recent(crashes, now)) > self.crashes

    def pause(self, crashes: Iterable[datetime], now: datetime) -> timedelta:
        """How long to wait before the next start. After the first crash there is no wait."""
        count = len(self.recent(crashes, now))
        doubled = min(count - 2, 16)  # more would be no longer pause, and too large a number
        return timedelta() if count <= 1 else min(self.first * 2**doubled, self.longest)
