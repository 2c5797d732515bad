"""What a backlog calls for, from how it moved: a plain decision over samples.

It takes for granted that a job with a backlog is busy all the time, and that speed grows with
cores. So its numbers are where to begin, not promises.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from statistics import linear_regression
from typing import Any, Literal

from headgate.commands import pipeline_command, rendered
from headgate.storage.lag import Sample
from headgate.supervision.words import span

FEWEST = 4
"""Samples; with fewer there is no advice."""
SHORTEST = timedelta(seconds=15)
"""From the first sample to the last."""
LEVEL = timedelta(seconds=10)
"""A backlog that is taken in within this time is none to speak of."""
STEADY = 0.03
"""A backlog that moves by less than this part of what is taken in stands still."""
WITHIN = timedelta(hours=1)
"""How soon a job should have caught up."""

Trend = Literal["falling behind", "standing still", "catching up"]


@dataclass(frozen=True)
class Advice:
    """``growth`` is that of the backlog, in records a second, negative where it shrinks; ``level``
    when it is gone at this rate. ``keep_up`` and ``catch_up`` are the cores that would do: for
    what arrives, and to be level within an hour besides; None where that cannot be told or needs
    no more than there are. ``full`` is a limit of records a batch that holds it back instead."""

    trend: Trend
    backlog: int
    growth: float
    level: timedelta | None = None
    keep_up: int | None = None
    catch_up: int | None = None
    full: int | None = None

    def __str__(self) -> str:
        return rendered(f"{self._how()}{self._what()}")

    def as_dict(self) -> dict[str, Any]:
        level = None if self.level is None else round(self.level.total_seconds())
        return asdict(self) | {"growth": round(self.growth, 1), "level": level}

    def _how(self) -> str:
        if self.trend == "falling behind":
            return f"falling behind by {self.growth:,.0f} records/s"
        if self.level is None:
            return f"keeping up, {self.backlog:,} records behind"
        return f"catching up: level in about {span(self.level)}"

    def _what(self) -> str:
        if self.full is not None:
            return f": batches are short and full, so raise max_per_batch ({self.full:,}) first"
        if self.keep_up is not None and self.keep_up == self.catch_up:
            return f": {self.keep_up} cores would keep up, and catch up within an hour"
        told = [f"{self.keep_up} cores would keep up"] * bool(self.keep_up)
        if self.catch_up:
            told.append(f"{self.catch_up}{'' if told else ' cores'} would catch up within an hour")
        if not told and self.trend == "falling behind":
            return f": nothing was taken in, see {pipeline_command('logs')}"
        return f": {', '.join(told)}" if told else ""


def advise(samples: Sequence[Sample], cores: int, *, full: int | None = None) -> Advice | None:
    """What ``samples`` of a job that has ``cores`` call for; None where it is level, or where
    there are too few of them. ``full`` is the most records a batch may have, where batches have
    as many and end early: then more cores would be idle.
    """
    busy = _since_level(samples)
    if len(busy) < FEWEST or busy[-1].at - busy[0].at < SHORTEST:
        return None
    seconds = (busy[-1].at - busy[0].at).total_seconds()
    absorbed = (busy[-1].read - busy[0].read) / seconds
    backlog = busy[-1].backlog
    if backlog <= absorbed * LEVEL.total_seconds():
        return None
    # By least squares: batches move a backlog up and down.
    times = [(sample.at - busy[0].at).total_seconds() for sample in busy]
    growth = linear_regression(times, [sample.backlog for sample in busy]).slope
    trend: Trend = "falling behind" if growth > 0 else "catching up"
    if abs(growth) <= STEADY * absorbed:
        trend = "standing still"
    level = timedelta(seconds=backlog / -growth) if trend == "catching up" else None
    in_time = level is not None and level <= WITHIN
    if absorbed <= 0 or in_time or full is not None:
        return Advice(trend, backlog, growth, level, full=None if in_time else full)
    arriving = absorbed + growth
    keep_up = math.ceil(arriving * cores / absorbed) if trend == "falling behind" else None
    catch_up = math.ceil((arriving + backlog / WITHIN.total_seconds()) * cores / absorbed)
    return Advice(trend, backlog, growth, level, keep_up, max(catch_up, cores + 1))


def _since_level(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Those since the backlog was last gone: before that, the job was not busy."""
    last = max((i for i, sample in enumerate(samples) if not sample.backlog), default=-1)
    return samples[last + 1 :]
