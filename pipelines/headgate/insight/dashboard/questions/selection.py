"""Which rows of a gold table a question is about, and the times of its results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from headgate.declaration.model import GoldTable
from headgate.insight.dashboard.errors import BadQuestionError
from headgate.insight.dashboard.questions.sql import Condition, all_of, duck_type
from headgate.insight.dashboard.questions.view import Facts, GoldView
from headgate.insight.querying.sandbox import quoted

KEY, NULL = "key.", "null."
"""Prefixes of parameters: ``key.channel=app`` is a value, ``null.channel=1`` is null."""
_MOST_SECONDS = 100 * 366 * 86_400


@dataclass(frozen=True)
class Selection:
    """Rows whose result begins at or after ``since`` and before ``until``. ``last`` counts back
    from the end of the newest result. ``keys`` are columns and texts of their values; None is
    null."""

    since: datetime | None = None
    until: datetime | None = None
    last: timedelta | None = None
    keys: tuple[tuple[str, str | None], ...] = ()

    def within(self, begin: str | None, newest: datetime | None) -> Condition:
        """The condition on the column ``begin``; ``newest`` is the end of the newest result."""
        if begin is None:
            return Condition()
        conditions = []
        since = self.since
        if self.last is not None and newest is not None:
            since = newest - self.last
        if since is not None:
            conditions.append(Condition(f"{quoted(begin)} >= ?", (since,)))
        if self.until is not None:
            conditions.append(Condition(f"{quoted(begin)} < ?", (self.until,)))
        return all_of(*conditions)

    def of_keys(self, table: GoldTable) -> Condition:
        types = {key.name: duck_type(key.type) for key in table.by}
        return all_of(
            *(
                Condition(f"{quoted(name)} IS NULL")
                if value is None
                else Condition(f"{quoted(name)} = TRY_CAST(? AS {types[name]})", (value,))
                for name, value in self.keys
            )
        )


def selection(facts: Facts, asked: Sequence[tuple[str, str]]) -> Selection:
    """The selection in the query parameters of an address; other parameters are ignored. Raises
    BadQuestionError."""
    given = dict(asked)
    return Selection(
        since=_time(given, "from"),
        until=_time(given, "to"),
        last=_last(given),
        keys=tuple(
            [(facts.key(n[len(KEY) :]), value) for n, value in asked if n.startswith(KEY)]
            + [(facts.key(n[len(NULL) :]), None) for n, _ in asked if n.startswith(NULL)]
        ),
    )


def whole(given: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    """A whole number of the parameters, limited to ``low`` … ``high``. Raises BadQuestionError."""
    text = given.get(name) or str(default)
    if not text.isascii() or not text.isdecimal() or len(text) > 12:
        raise BadQuestionError(
            f"{name} must be a whole number, not {text[:40]!r}", remedy=f"for example {default}"
        )
    return min(max(int(text), low), high)


def _time(given: Mapping[str, str], name: str) -> datetime | None:
    if not (text := given.get(name)):
        return None
    try:
        found = datetime.fromisoformat(text)
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise BadQuestionError(
            f"{name} must be a time, not {text[:40]!r}", remedy="for example 2026-05-04T12:00Z"
        ) from None


def _last(given: Mapping[str, str]) -> timedelta | None:
    if not given.get("last"):
        return None
    return timedelta(seconds=whole(given, "last", 3600, 1, _MOST_SECONDS))


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, eq=False)
class ResultTimes:
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
        return _instant(int(self.begins[place]))

    @property
    def bounds(self) -> tuple[int, int]:
        return (self.first, self.last)

    @property
    def newest(self) -> datetime:
        return _instant(self.end)


def _instant(microseconds: int) -> datetime:
    """A time, or Python's last one if it is later: the last window of the year 9999 ends after
    it."""
    with suppress(OverflowError):
        return _EPOCH + timedelta(microseconds=microseconds)
    return datetime.max.replace(tzinfo=UTC)


def span(view: GoldView) -> ResultTimes | None:
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


def _span(view: GoldView, first: str, last: str) -> ResultTimes:
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
    return ResultTimes(
        int(begins[0]), int(begins[-1]), int(end_of_last), max(step, 1), begins, rows
    )
