"""Rows of a gold table that a person decides about: what readers see, and what they would see.

A gate keeps the rows that break its rules, a backfill those that differ. Whatever shows such rows,
to a person or to a program, takes them from here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, Literal

from headgate.declaration.quantities import plural

Values = Mapping[str, str | None]
"""The values of a row as text, by column. None is null."""
Change = Literal["changed", "new", "gone", "seen"]
MOST = 20
"""The number of rows of a table that a person is shown at once, if they have few lines."""
MOST_LINES = 60


@dataclass(frozen=True)
class RowChange:
    """A row ``before``, as readers see it, and ``after``, as they would. One side is None if there
    is no row. ``rules`` are the ids of the rules that ``after`` breaks."""

    before: Values | None
    after: Values | None
    rules: tuple[str, ...] = ()

    @property
    def change(self) -> Change:
        """``seen`` if readers see the same row already."""
        if self.before is None:
            return "new"
        if self.after is None:
            return "gone"
        return "seen" if self.before == self.after else "changed"


@dataclass(frozen=True)
class Line:
    """A line about a row: one column that differs, or all ``columns`` if the row is new or gone, or
    if readers see it already. ``is_first``: of the lines of its row."""

    row: RowChange
    window: tuple[str | None, ...]
    key: Values
    columns: tuple[str, ...]
    is_first: bool

    @property
    def column(self) -> str | None:
        """The column that differs; None if the line is about the whole row."""
        return self.columns[0] if self.row.change == "changed" else None

    @property
    def before(self) -> Values | None:
        """What readers see of the columns; None if there is no row."""
        return self._of(self.row.before)

    @property
    def after(self) -> Values | None:
        return self._of(self.row.after)

    def _of(self, side: Values | None) -> Values | None:
        return None if side is None else {name: side[name] for name in self.columns}


@dataclass(frozen=True)
class RowChanges:
    """The first ``rows`` of ``total``; None if they are too many to be counted. ``window`` and
    ``by`` are the columns that identify a row: those of its window, and its key. ``columns`` are
    the others."""

    window: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[RowChange, ...] = ()
    total: int | None = 0

    def first(self, most: int = MOST) -> RowChanges:
        """The same with at most this many rows: the first ones, as long as they have not more than
        ``MOST_LINES`` lines."""
        ends = accumulate(len(self._of(row)) for row in self.rows[:most])
        fitting = sum(end <= MOST_LINES for end in ends)
        return replace(self, rows=self.rows[: max(fitting, 1)])

    @property
    def lines(self) -> Iterator[Line]:
        for row in self.rows:
            values = row.after or row.before or {}
            window = tuple(values[name] for name in self.window)
            key = {name: values[name] for name in self.by}
            for number, columns in enumerate(self._of(row)):
                yield Line(row, window, key, columns, is_first=number == 0)

    def _of(self, row: RowChange) -> list[tuple[str, ...]]:
        """The columns of each line of a row."""
        if row.before is None or row.after is None or row.change == "seen":
            return [self.columns]
        return [(name,) for name in self.columns if row.before[name] != row.after[name]]

    @property
    def is_whole(self) -> bool:
        """Whether these are all rows."""
        return self.total == len(self.rows)

    @property
    def count(self) -> str:
        """How many rows there are, and how many of them are shown."""
        shown = len(self.rows)
        if self.total is None:
            return f"the first {shown:,} of many rows"
        rows = plural(self.total, "row")
        return rows if self.is_whole else f"the first {shown:,} of {rows}"

    def document(self) -> dict[str, Any]:
        """The rows, for programs."""
        rows = [
            {
                "change": row.change,
                "before": row.before and {**row.before},
                "after": row.after and {**row.after},
                "rules": [*row.rules],
            }
            for row in self.rows
        ]
        return {
            "window": [*self.window],
            "by": [*self.by],
            "columns": [*self.columns],
            "total": self.total,
            "rows": rows,
        }


NO_ROWS = RowChanges()
