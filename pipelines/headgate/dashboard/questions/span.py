"""The times of a gold table's results."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from headgate.dashboard.questions.facts import Facts
from headgate.dashboard.questions.reader import Reader
from headgate.dashboard.questions.selection import Selection
from headgate.dashboard.questions.sql import Condition, all_of, quoted
from headgate.dashboard.reading.versions import Version
from headgate.declaration.model import GoldTable

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


def span(reader: Reader, facts: Facts, gold: Version) -> Span | None:
    """None if the table has no rows, or its results have no bounds."""
    if facts.begin is None or facts.end is None or gold.rows == 0:
        return None
    begin, end = facts.begin, facts.end
    return reader.known("span", gold.key, lambda: _span(reader, begin, end, gold))


def chosen_rows(
    reader: Reader, table: GoldTable, facts: Facts, selection: Selection, gold: Version
) -> Condition:
    """The condition for the rows that a selection chooses."""
    found = span(reader, facts, gold)
    return all_of(
        selection.within(facts.begin, found.newest if found else None), selection.of_keys(table)
    )


def _span(reader: Reader, first: str, last: str, gold: Version) -> Span:
    begin, end = quoted(first), quoted(last)
    found = reader.ask(
        f"SELECT epoch_us({begin}), max(epoch_us({end})), count(*) FROM gold GROUP BY 1 ORDER BY 1",
        gold=(gold, (first, last)),
    ).rows
    begins = np.array([row[0] for row in found], np.int64)
    end_of_last = max(row[1] for row in found)
    step = int(np.gcd.reduce(np.diff(begins))) if len(begins) > 1 else int(end_of_last - begins[0])
    rows = np.array([row[2] for row in found], np.int64)
    return Span(int(begins[0]), int(begins[-1]), int(end_of_last), max(step, 1), begins, rows)
