"""The trend of a backlog, computed from samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from statistics import linear_regression
from typing import Any, Literal

from headgate.declaration.quantities import plural, span
from headgate.lake.control.driver_reports import LagSample

FEWEST = 4
"""The least number of samples for a trend."""
SHORTEST = timedelta(seconds=15)
"""The least time from the first sample to the last."""
LEVEL = timedelta(seconds=10)
"""A backlog that is processed within this time is not mentioned."""
STEADY = 0.03
"""A backlog that changes by less than this part of what is processed is steady."""


@dataclass(frozen=True)
class Trend:
    """``growth`` of the backlog is in records a second, negative if it shrinks. ``level`` is the
    time until it is processed at this rate."""

    trend: Literal["falling behind", "standing still", "catching up"]
    backlog: int
    growth: float
    level: timedelta | None = None

    def __str__(self) -> str:
        if self.level is not None:
            return f"catching up: up to date in about {span(self.level)}"
        if self.trend == "falling behind":
            return f"falling behind by {self.growth:,.0f} records/s"
        return f"keeping up, {plural(self.backlog, 'record')} behind"

    def as_dict(self) -> dict[str, Any]:
        level = None if self.level is None else round(self.level.total_seconds())
        return asdict(self) | {"growth": round(self.growth, 1), "level": level, "says": str(self)}


def trend_of(samples: Sequence[LagSample]) -> Trend | None:
    """The trend of a job's backlog; None without a backlog or with too few samples."""
    # Use the samples since the backlog was last zero.
    level_at = max((i for i, sample in enumerate(samples) if not sample.backlog), default=-1)
    busy = samples[level_at + 1 :]
    if len(busy) < FEWEST or busy[-1].at - busy[0].at < SHORTEST:
        return None
    times = [(sample.at - busy[0].at).total_seconds() for sample in busy]
    processed = (busy[-1].read - busy[0].read) / times[-1]
    backlog = busy[-1].backlog
    if backlog <= processed * LEVEL.total_seconds():
        return None
    # By least squares: batches move a backlog up and down.
    growth = linear_regression(times, [sample.backlog for sample in busy]).slope
    if abs(growth) <= STEADY * processed:
        return Trend("standing still", backlog, growth)
    if growth > 0:
        return Trend("falling behind", backlog, growth)
    return Trend("catching up", backlog, growth, timedelta(seconds=backlog / -growth))
