"""The progress of a job as a line of text, for terminals and logs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from headgate.declaration.kinds import BRONZE, GOLD, SILVER, Kind, kind_of, name_of
from headgate.declaration.quantities import span

if TYPE_CHECKING:
    from headgate.lake.control.driver_reports import SourceProgress

GAP = "  "
STAGE_PREFIX = "… "
"""The prefix of lines about the stages of a start."""


class ReportedProgress(Protocol):
    """The progress that a driver reports, also in its status document."""

    @property
    def job(self) -> str: ...
    @property
    def rows(self) -> int | None: ...
    @property
    def seconds(self) -> float | None: ...
    @property
    def sources(self) -> Mapping[str, SourceProgress]: ...
    @property
    def trouble(self) -> str | None: ...
    @property
    def changed(self) -> datetime | None: ...
    @property
    def totals(self) -> Mapping[str, Mapping[str, int]] | None: ...
    @property
    def paused(self) -> datetime | None: ...


def progress_line(job: ReportedProgress, now: datetime) -> str:
    return GAP.join(progress_parts(job, now))


def progress_parts(job: ReportedProgress, now: datetime) -> tuple[str, ...]:
    """Batch, records read in all and the speed of the last batch (neither for a job without bronze,
    and no speed before this run has ended a batch), backlog, watermark, late, quarantined, rejected
    and files set aside (if there are some), when gold last changed, a pause, and what fails now.
    Batch, backlog, watermark and files set aside are those of each source."""
    read = [f"read {_total(job, BRONZE, 'read'):,}"]
    if job.seconds:
        speed = (job.rows or 0) / job.seconds
        read.append(f"{speed:,.1f} rows/s" if 0 < speed < 10 else f"{speed:,.0f} rows/s")
    changed = f"changed {span(now - job.changed)} ago" if job.changed else "-"
    remarks = (job.trouble,) if job.trouble else ()
    if job.paused:
        remarks = (f"paused since {job.paused:%T}", *remarks)
    rejected = sum(rejected_rows(job).values())
    name = "batch" if job.job == "fused" else job.job
    behind, aside = list[str](), list[str]()
    if len(job.sources) == 1:
        (source,) = job.sources.values()
        name, behind, aside = f"{name} {source.n}", _behind(source), _set_aside(source)
    return (
        f"{now:%T}",
        *([name] if len(job.sources) == 1 or job.job != "fused" else []),
        *(read if job.job in ("fused", "bronze") else ()),
        *behind,
        *(_of_several(*each) for each in job.sources.items() if len(job.sources) > 1),
        f"late {_total(job, GOLD, 'late'):,}",
        f"quarantined {sum(source.quarantined for source in job.sources.values()):,}",
        *([f"rejected {rejected:,}"] if rejected else []),
        *aside,
        f"gold {changed}",
        *remarks,
    )


def _of_several(name: str, source: SourceProgress) -> str:
    """A source among several ones, in one part, so that the screen keeps it together."""
    return f"{name}: " + ", ".join([f"batch {source.n}", *_behind(source), *_set_aside(source)])


def _behind(source: SourceProgress) -> list[str]:
    clock = f"{source.watermark:%F %T}" if source.watermark else "-"
    backlog = "-" if source.backlog is None else source.backlog
    return [f"backlog {backlog}", f"watermark {clock}"]


def _set_aside(source: SourceProgress) -> list[str]:
    return [f"files set aside {source.set_aside:,}"] if source.set_aside else []


def rejected_rows(job: ReportedProgress) -> dict[str, int]:
    """How many rows the rules of each silver table have rejected, without tables that have none."""
    silver = {n: t for n, t in (job.totals or {}).items() if kind_of(n) == SILVER}
    return {name_of(n): t["rejected"] for n, t in silver.items() if t.get("rejected")}


def _total(job: ReportedProgress, kind: Kind, count: str) -> int:
    by_table = job.totals or {}
    return sum(total.get(count, 0) for name, total in by_table.items() if kind_of(name) == kind)
