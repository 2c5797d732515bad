"""The times of a gold table's results."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from headgate.insight.dashboard.questions.selection import Selection
from headgate.insight.dashboard.questions.sql import Condition, all_of
from headgate.insight.dashboard.questions.view import GoldView
from headgate.insight.querying.sandbox import quoted

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, eq=False)
class Span:
    """Microseconds since 1970 UTC: the first and the last beginning of a result, and the last end.
    ``step`` divides the distance of any two beginnings. ``begins`` are all beginnings in ascending
    order, ``rows`` the number of rows at each."""

    first: int
    last: int
    end: int
    step: int
    begins: np.ndarray[Any, Any]
    rows: np.ndarray[Any, Any]

    def from_newest(self, rows: int) -> datetime:
        """The last beginning at or after which there are at least ``rows`` rows; the first one if
        there are fewer."""
        reached = np.searchsorted(np.cumsum(self.rows[::-1]), rows)
        place = max(len(self.begins) - 1 - int(reached), 0)
        return _time(int(self.begins[place]))

    @property
    def bounds(self) -> tuple[int, int]:
        return (self.first, self.last)

    @property
    def newest(self) -> datetime:
        return _time(self.end)


def _time(microseconds: int) -> datetime:
    """A time, or Python's last one if it is later: the last window of the year 9999 ends after
    it."""
    with suppress(OverflowError):
        return _EPOCH + timedelta(microseconds=microseconds)
    return datetime.max.replace(tzinfo=UTC)


def span(view: GoldView) -> Span | None:
    """None if the table has no rows, or its results have no bounds."""
    begin, end = view.facts.begin, view.facts.end
    if begin is None or end is None or view.version.rows == 0:
        return None
    version = view.version  # a span may be large: only that of the newest version is kept
    return view.reader.known(
        "span", version.address, lambda: _span(view, begin, end), at=version.key
    )


def chosen_rows(view: GoldView, selection: Selection) -> Condition:
    """The condition for the rows that a selection chooses."""
    found = span(view)
    return all_of(
        selection.within(view.facts.begin, found.newest if found else None),
        selection.of_keys(view.table),
    )


def _span(view: GoldView, first: str, last: str) -> Span:
    begin, end = quoted(first), quoted(last)
    found = view.ask(
        f"SELECT epoch_us({begin}), max(epoch_us({end})), count(*) FROM gold GROUP BY 1 ORDER BY 1",
        (),
        (first, last),
    )
    begins = np.array([row[0] for row in found], np.int64)
    end_of_last = max(row[1] for row in found)
    step = int(np.gcd.reduce(np.diff(begins))) if len(begins) > 1 else int(end_of_last - begins[0])
    rows = np.array([row[2] for row in found], np.int64)
    return Span(int(begins[0]), int(begins[-1]), int(end_of_last), max(step, 1), begins, rows)
