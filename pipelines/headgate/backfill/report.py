"""What a backfill found: plain values, and the decisions about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from headgate.storage.documents import Document, encoded

Result = Literal["equal", "differs", "empty"]
"""``empty``: no final window is in the range, so nothing was compared."""
Row = Mapping[str, str | None]


@dataclass(frozen=True)
class ColumnDifference:
    """A column that has another value in ``rows`` rows. ``largest`` is the largest difference of
    two numbers; None if the column has no numbers."""

    column: str
    rows: int
    largest: float | None = None


@dataclass(frozen=True)
class Sample:
    """A row that differs, with its values as text: ``before`` as in the table, ``after`` as the
    backfill gives it. One side is None if the row is new or gone."""

    change: str
    before: Row | None
    after: Row | None


@dataclass(frozen=True)
class TableReport:
    """The rows of one gold table whose results lie in the range. ``n`` is the batch id at which
    they were compared. ``equal``, ``changed``, ``new`` and ``gone`` count rows; ``windows`` counts
    results that have rows, and ``windows_equal`` the results without a difference. ``live`` and
    ``backfilled`` are the digests of both sides. ``earlier`` are the ids of the backfills that were
    published into the range before."""

    table: str
    n: int
    equal: int
    changed: int
    new: int
    gone: int
    windows: int
    windows_equal: int
    live: str
    backfilled: str
    columns: tuple[ColumnDifference, ...] = ()
    samples: tuple[Sample, ...] = ()
    earlier: tuple[str, ...] = ()

    @property
    def differing(self) -> int:
        return self.changed + self.new + self.gone

    @property
    def result(self) -> Result:
        if self.differing or self.live != self.backfilled:
            return "differs"
        return "equal" if self.windows else "empty"


@dataclass(frozen=True)
class Published:
    """The publication of a backfill: the operation's number, and the id of the savepoint that was
    taken before. In the tables ``void``, the patches changed nothing; those of the tables
    ``rejected`` were rejected by a person. The tables ``waiting`` have not carried it out yet,
    because their gates hold them or no driver runs."""

    operation: int
    savepoint: str
    void: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    rejected: tuple[str, ...] = ()

    @property
    def unchanged(self) -> frozenset[str]:
        """The tables that have not taken the rows over."""
        return frozenset({*self.void, *self.waiting, *self.rejected})


@dataclass(frozen=True)
class Report:
    """A backfill of the event times ``[begin, end)``. With ``by_end``, it has the results that end
    in ``(begin, end]``, also those that began before. ``end`` is None if there was no end.
    ``declaration`` is the digest of the declaration that was used."""

    id: str
    pipeline: str
    at: datetime
    begin: datetime
    end: datetime | None
    declaration: str
    tables: tuple[TableReport, ...]
    published: Published | None = None
    by_end: bool = False

    @property
    def result(self) -> Result:
        """``empty`` if no table has a final window in the range."""
        found = {each.result for each in self.tables}
        return "differs" if "differs" in found else "equal" if "equal" in found else "empty"

    @property
    def differing(self) -> tuple[str, ...]:
        """The tables that a publication changes."""
        return tuple(each.table for each in self.tables if each.differing)

    @property
    def taken_over(self) -> tuple[str, ...]:
        """The tables that have the rows now."""
        if self.published is None:
            return ()
        return tuple(name for name in self.differing if name not in self.published.unchanged)

    def document(self) -> Document:
        """With the results, which are not read again: they are computed from the counts."""
        tables = [{**encoded(each), "result": each.result} for each in self.tables]
        return {**encoded(self), "result": self.result, "tables": tables}
