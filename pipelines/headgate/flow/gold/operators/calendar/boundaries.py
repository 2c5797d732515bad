"""The boundaries of days, weeks and months of a time zone, in seconds since 1970 UTC.

A day begins at the first instant of its local date. If the clocks skip midnight, this is a later
hour; if they show it twice, it is the first time. If they go back from a date to the date before,
the second part of the earlier date belongs to the later day: windows do not overlap. A date that
the clocks skip has no window.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache
from itertools import count, pairwise
from typing import Literal, get_args

from headgate.flow.gold.operators.calendar.zones import CYCLE, DAY, ZoneRules, rules_of

Unit = Literal["day", "week", "month"]
UNITS: tuple[Unit, ...] = get_args(Unit)
_MARGIN = 40 * DAY
"""Longer than any window."""
_MONDAY = 4  # 1970-01-05
_EPOCH = date(1970, 1, 1).toordinal()


@dataclass(frozen=True)
class Boundaries:
    """Runs of windows of equal length: run ``i`` begins at ``starts[i]``, and its windows have the
    length ``lengths[i]``. Outside of ``[low, high)``, windows repeat every ``CYCLE``."""

    low: int
    high: int
    starts: tuple[int, ...]
    lengths: tuple[int, ...]

    def around(self, time: int) -> tuple[int, int]:
        """The begin and the end of the window that contains a time."""
        cycles = min(0, (time - self.low) // CYCLE) + max(0, (time - self.high) // CYCLE + 1)
        time -= cycles * CYCLE
        run = bisect_right(self.starts, time) - 1
        begin = time - (time - self.starts[run]) % self.lengths[run] + cycles * CYCLE
        return begin, begin + self.lengths[run]


@cache
def boundaries(unit: Unit, zone: str) -> Boundaries:
    """The windows of a zone that is one of ``zone_names``."""
    rules = rules_of(zone)
    low = min(rules.changes, default=0) - CYCLE - _MARGIN
    high = rules.settled + CYCLE - _MARGIN
    starts: list[int] = []
    lengths: list[int] = []
    begin = None
    for end in _begins(unit, rules, low - _MARGIN):
        if begin is not None and (not lengths or end - begin != lengths[-1]):
            starts.append(begin)
            lengths.append(end - begin)
        if end >= high:
            break
        begin = end
    return Boundaries(low, high, tuple(starts), tuple(lengths))


def _begins(unit: Unit, rules: ZoneRules, after: int) -> Iterator[int]:
    """The begins of windows in ascending order, from about ``after`` on. A date that the clocks
    skip begins with the date after it: its window has no length, and no time is in it."""
    midnights = _midnights(unit, after // DAY)
    midnight = next(midnights)
    # The first window begins before ``after``.
    changes = (after - _MARGIN, *rules.changes, rules.settled + CYCLE)
    for (since, until), offset in zip(pairwise(changes), rules.offsets, strict=True):
        # While the clocks are at ``offset``, they show ``midnight`` or, if they have skipped it, a
        # later time.
        while (begin := max(since, midnight - offset)) < until:
            yield begin
            midnight = next(midnights)


def _midnights(unit: Unit, day: int) -> Iterator[int]:
    """The local times at which windows begin, as if 1970 were local too, from the window of a day
    since 1970 on."""
    if unit == "day":
        return count(day * DAY, DAY)
    if unit == "week":
        return count((day - (day - _MONDAY) % 7) * DAY, 7 * DAY)
    return _months(date.fromordinal(_EPOCH + day))


def _months(day: date) -> Iterator[int]:
    for month in count(day.year * 12 + day.month - 1):
        first = date(month // 12, month % 12 + 1, 1)
        yield (first.toordinal() - _EPOCH) * DAY
