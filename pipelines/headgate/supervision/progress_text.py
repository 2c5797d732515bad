"""The progress of a job as a line of text, for terminals and logs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from headgate.declaration.kinds import BRONZE, GOLD, SILVER, Kind, kind_of, name_of
from headgate.declaration.quantities import span

if TYPE_CHECKING:
    from headgate.lake.control.driver_reports import Backlog

GAP = "  "
STAGE_PREFIX = "… "
"""The prefix of lines about the stages of a start."""


class ReportedProgress(Protocol):
    """The progress that a driver reports, also in its status document."""

    @property
    def job(self) -> str: ...
    @property
    def n(self) -> int | None: ...
    @property
    def rows(self) -> int | None: ...
    @property
    def seconds(self) -> float | None: ...
    @property
    def backlog(self) -> Backlog | None: ...
    @property
    def trouble(self) -> str | None: ...
    @property
    def watermark(self) -> datetime | None: ...
    @property
    def changed(self) -> datetime | None: ...
    @property
    def totals(self) -> Mapping[str, Mapping[str, int]] | None: ...
    @property
    def paused(self) -> datetime | None: ...
    @property
    def set_aside(self) -> int: ...


def progress_line(job: ReportedProgress, now: datetime) -> str:
    return GAP.join(progress_parts(job, now))


def progress_parts(job: ReportedProgress, now: datetime) -> tuple[str, ...]:
    """Batch, records read in all and the speed of the last batch (neither for a job without bronze,
    and no speed before this run has ended a batch), backlog, watermark, late, quarantined, rejected
    and files set aside (if there are some), when gold last changed, a pause, and what fails now."""
    read = [f"read {_total(job, BRONZE, 'read'):,}"]
    if job.seconds:
        speed = (job.rows or 0) / job.seconds
        read.append(f"{speed:,.1f} rows/s" if 0 < speed < 10 else f"{speed:,.0f} rows/s")
    clock = f"{job.watermark:%F %T}" if job.watermark else "-"
    changed = f"changed {span(now - job.changed)} ago" if job.changed else "-"
    remarks = (job.trouble,) if job.trouble else ()
    if job.paused:
        remarks = (f"paused since {job.paused:%T}", *remarks)
    rejected = sum(rejected_rows(job).values())
    return (
        f"{now:%T}",
        f"batch {job.n}" if job.job == "fused" else f"{job.job} {job.n}",
        *(read if job.job in ("fused", "bronze") else ()),
        f"backlog {'-' if job.backlog is None else job.backlog}",
        f"watermark {clock}",
        f"late {_total(job, GOLD, 'late'):,}",
        f"quarantined {_total(job, SILVER, 'quarantined'):,}",
        *([f"rejected {rejected:,}"] if rejected else []),
        *([f"files set aside {job.set_aside:,}"] if job.set_aside else []),
        f"gold {changed}",
        *remarks,
    )


def rejected_rows(job: ReportedProgress) -> dict[str, int]:
    """How many rows the rules of each silver table have rejected, without tables that have none."""
    silver = {n: t for n, t in (job.totals or {}).items() if kind_of(n) == SILVER}
    return {name_of(n): t["rejected"] for n, t in silver.items() if t.get("rejected")}


def _total(job: ReportedProgress, kind: Kind, count: str) -> int:
    by_table = job.totals or {}
    totals = [t.get(count, 0) for name, t in by_table.items() if kind_of(name) == kind]
    # The same records fail for every silver table: they are counted once.
    return max(totals, default=0) if kind == SILVER else sum(totals)
