"""The states of a pipeline's jobs, read from their documents, and how its last run ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from headgate.lake.control.driver_reports import Failure, Outage, SourceProgress
from headgate.lake.control.driver_requests import StopRequest, stop_requested
from headgate.lake.control.ownership import (
    EXPIRES_AFTER,
    LAYERS,
    Owner,
    in_force,
    lease_path,
    owner_of,
)
from headgate.lake.storage.documents import Document, damaged_document, decoded, read_document
from headgate.lake.storage.layout import Layout

StateName = Literal["running", "paused", "stopped", "stale", "dead"]
"""``paused``: running, but bronze reads no new data until `resume`; ``stale``: probably alive,
but its lease was not renewed in time; ``dead``: its process ended without releasing its lease, and
no stop was requested. A stale or dead job may be started again: its tables continue exactly where
they stopped."""


@dataclass(frozen=True)
class JobState:
    """One job: ``fused``, or the layer that it runs. The fields from its status document (``rows``
    and all after it, except ``restarts`` and ``operation``) have their defaults before its tables
    are open. ``sources`` are the sources of the pipeline by name. ``updated`` is when a batch last
    ended or all input was processed; a job keeps it from a predecessor that died. ``finished``: a
    stopped job had processed all input (``--once``). ``load_outage`` is that of the history of a
    load. ``changed`` is when gold last changed. ``restarts`` counts the drivers that replaced a
    failed or killed one. ``stuck`` are the publications whose sinks take no rows, by name, with the
    reason and the time of the first failure. ``operation`` names the work of an owner that is not a
    driver, such as a restore."""

    job: str
    layers: tuple[str, ...]
    state: StateName
    owner: Owner
    epoch: int
    since: datetime
    renewed: datetime
    rows: int | None = None
    seconds: float | None = None
    sources: dict[str, SourceProgress] = field(default_factory=dict)
    load_outage: Outage | None = None
    trouble: str | None = None
    finished: bool = False
    changed: datetime | None = None
    updated: datetime | None = None
    totals: dict[str, dict[str, int]] | None = None
    paused: datetime | None = None
    restarts: int = 0
    operation: str | None = None
    stuck: dict[str, dict[str, str]] | None = None

    @property
    def is_alive(self) -> bool:
        return self.state in ("running", "paused", "stale")

    @property
    def is_waiting(self) -> bool:
        """It is alive, and none of its sources can be read."""
        return self.is_alive and (self.tried is not None or self.waits_for_a_person)

    @property
    def waits_since(self) -> datetime | None:
        """Since when it can read none of its sources; None while it can read one."""
        if not self.is_waiting:
            return None
        reasons = (source.outage or source.failure for source in self.sources.values())
        return max(reason.since for reason in reasons if reason is not None)

    @property
    def waits_for_a_person(self) -> bool:
        """It is alive, and a person has to act before it can read any of its sources."""
        failures = [source.failure for source in self.sources.values()]
        return self.is_alive and bool(failures) and None not in failures

    @property
    def tried(self) -> datetime | None:
        """When it last tried to reach its sources in vain; None if one of them can be read."""
        if any(source.is_readable for source in self.sources.values()):
            return None
        outages = (source.outage for source in self.sources.values())
        return max((outage.tried for outage in outages if outage), default=None)

    @property
    def last_progress(self) -> datetime:
        """When it last completed a batch, was up to date, or has tried to reach its sources."""
        return max(at for at in (self.since, self.updated, self.tried) if at is not None)

    @property
    def is_awaited(self) -> bool:
        """Whether it is alive and can be expected to answer. A job on another machine that does not
        renew its lease may no longer exist; the next driver takes over from it."""
        return self.is_alive and (self.state != "stale" or self.owner.is_here)

    @property
    def is_open(self) -> bool:
        """Its tables are open and fenced; only a source can still make the start fail."""
        return bool(self.sources)

    @property
    def has_reached_sources(self) -> bool:
        """Its sources have answered, so it can plan their first batches, or wait for a person."""
        unreached = (s for s in self.sources.values() if s.backlog is None)
        return self.is_open and all(source.failure is not None for source in unreached)

    @property
    def reads_all_sources(self) -> bool:
        return all(source.is_readable for source in self.sources.values())

    @property
    def lacks_sources(self) -> bool:
        """Some of its sources have not answered yet, and cannot be read. It has reached the
        others."""
        unreached = [s for s in self.sources.values() if s.backlog is None]
        return bool(unreached) and not any(source.is_readable for source in unreached)


def probe(layout: Layout, now: datetime) -> tuple[JobState, ...]:
    """The jobs that last held the pipeline's leases; empty if it never ran."""
    by_epoch: dict[int, list[str]] = {}
    documents: dict[int, Document] = {}
    for layer in LAYERS:
        if (held := read_document(layout.storage, lease_path(layer))) is not None:
            try:
                lease = in_force(held, now)
                by_epoch.setdefault(lease["epoch"], []).append(layer)
            except (KeyError, ValueError) as error:
                raise damaged_document(layout.storage, lease_path(layer), error) from error
            documents[lease["epoch"]] = lease
    return tuple(
        _job(layout, tuple(layers), documents[epoch], now) for epoch, layers in by_epoch.items()
    )


def overall_state(jobs: Sequence[JobState]) -> StateName:
    """The state of a pipeline: that of the job that needs attention most."""
    states = {job.state for job in jobs}
    order: tuple[StateName, ...] = ("dead", "stale", "paused", "running")
    return next((s for s in order if s in states), "stopped")


def _job(layout: Layout, layers: tuple[str, ...], lease: Document, now: datetime) -> JobState:
    job = "fused" if layers == LAYERS else layers[0]
    owner = owner_of(lease)
    status = read_document(layout.storage, Layout.document(f"status-{job}")) or {}
    reported: Document = {}
    # The last status of a stopped job stays valid, even if `files skip` ran after it.
    if status and (lease["released"] or status["epoch"] == lease["epoch"]):
        reported = status | {"finished": status.get("state") == "finished"}
    elif status.get("state") == "running" and not stop_requested(layout, status["epoch"]):
        reported = {"updated": status["updated"]}  # of a predecessor that died without a request
    state = state_of_lease(
        released=lease["released"],
        dead=owner.is_dead(),
        silence=now - datetime.fromisoformat(lease["renewed"]),
        paused=reported.get("paused") is not None,
    )
    if state == "dead" and stop_requested(layout, lease["epoch"]):
        state = "stopped"
    told = {"job": job, "layers": layers, "state": state, "owner": owner}
    try:
        return decoded({**reported, **lease, **told}, JobState)
    except ValueError as error:
        raise damaged_document(layout.storage, lease_path(layers[0]), error) from error


def state_of_lease(
    *, released: bool, dead: bool, silence: timedelta, paused: bool = False
) -> StateName:
    if released:
        return "stopped"
    if dead:
        return "dead"
    if silence > EXPIRES_AFTER:
        return "stale"
    return "paused" if paused else "running"


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
