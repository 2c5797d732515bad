"""The backlog in ``headgate status``: partitions and trend."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from rich.table import Table

from headgate.cli.output import grid

if TYPE_CHECKING:
    from headgate.storage.backlog import Backlog, PartitionBacklog
    from headgate.supervision.job_state import JobState
    from headgate.supervision.trend import Trend

SHOWN = 10


def furthest(partitions: Mapping[str, PartitionBacklog]) -> list[tuple[str, PartitionBacklog]]:
    """The partitions, those with the largest backlog first; the sort is stable."""
    return sorted(partitions.items(), key=lambda item: (-item[1].records, -item[1].seconds))


def partitions_table(partitions: Mapping[str, PartitionBacklog]) -> Table:
    ordered = furthest(partitions)
    rows = [(name, p.records, f"{p.seconds:,.0f} s") for name, p in ordered[:SHOWN]]
    if rest := ordered[SHOWN:]:
        rows.append((f"{len(rest):,} more", sum(p.records for _, p in rest), ""))
    return grid("", "partition", "unread:", "for:", rows=rows)


def waiting_for(backlog: Backlog) -> str | None:
    """A sentence about the partition that holds the watermark back; None for one partition."""
    if len(backlog.partitions) < 2:
        return None
    if backlog.holding is None:
        return "no partition holds the watermark: all of them are idle"
    clock = backlog.partitions[backlog.holding].clock
    if clock is None:
        return f"the watermark waits for {backlog.holding}: it has no record with a valid time yet"
    return f"the watermark waits for {backlog.holding}, at {datetime.fromisoformat(clock):%F %T}Z"


def trend_for(job: JobState) -> Trend | None:
    """The trend of a running job's backlog; None without enough samples."""
    from headgate.supervision.trend import trend_of

    return trend_of(job.samples) if job.state == "running" else None
