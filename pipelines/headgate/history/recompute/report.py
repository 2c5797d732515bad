"""The result of comparing gold with its definition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headgate.lake.tables.row_changes import RowChanges

NAMES = {"new": "missing", "gone": "extra"}
"""What the changes of rows are called here: the definition is right, and the table differs."""


@dataclass(frozen=True)
class RecomputedTable:
    """The rows of one gold table, compared at batch id ``n`` with those of its definition.
    ``missing`` rows are only in the definition, ``extra`` rows only in the table. ``corrected`` has
    the number of rows that have the values of a published backfill instead, by its id; they are in
    no other number. ``rows`` are some of those that are wrong."""

    table: str
    n: int
    equal: int
    changed: int
    missing: int
    extra: int
    corrected: Mapping[str, int]
    rows: RowChanges

    @property
    def differing(self) -> int:
        return self.changed + self.missing + self.extra

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to compare."""
        return not self.equal + self.differing + sum(self.corrected.values())

    def document(self) -> dict[str, Any]:
        rows = self.rows.document()
        for row in rows["rows"]:
            row["change"] = NAMES.get(row["change"], row["change"])
        return {**vars(self), "corrected": {**self.corrected}, "rows": rows}


@dataclass(frozen=True)
class Recomputation:
    """Of each table that was compared."""

    tables: tuple[RecomputedTable, ...]

    @property
    def holds(self) -> bool:
        return not any(table.differing for table in self.tables)

    def document(self) -> dict[str, Any]:
        return {"holds": self.holds, "tables": [table.document() for table in self.tables]}
