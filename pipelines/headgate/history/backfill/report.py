"""What a backfill found: plain values, and the decisions about them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from headgate.declaration.files import declaration_words
from headgate.lake.storage.documents import Document, encoded
from headgate.lake.tables.row_changes import NO_ROWS, RowChanges

Result = Literal["equal", "differs", "empty"]
"""``empty``: no final window is in the range, so nothing was compared."""


@dataclass(frozen=True)
class ColumnDifference:
    """A column that has another value in ``rows`` rows. ``largest`` is the largest difference of
    two numbers; None if the column has no numbers."""

    column: str
    rows: int
    largest: float | None = None


@dataclass(frozen=True)
class TableReport:
    """The rows of one gold table whose results lie in the range. ``n`` is the batch id at which
    they were compared. ``equal``, ``changed``, ``new`` and ``gone`` count rows; ``windows`` counts
    results that have rows, and ``windows_equal`` the results without a difference. ``live`` and
    ``backfilled`` are the digests of both sides. ``rows`` are some of those that differ.
    ``earlier`` are the ids of the backfills that were published into the range before."""

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
    rows: RowChanges = NO_ROWS
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
    ``declaration`` is the digest of the declaration that was used, ``file`` the name of its file;
    ``is_own``: it is the pipeline's own."""

    id: str
    pipeline: str
    at: datetime
    begin: datetime
    end: datetime | None
    declaration: str
    tables: tuple[TableReport, ...]
    published: Published | None = None
    by_end: bool = False
    file: str = ""
    is_own: bool = True

    @property
    def computed_by(self) -> str:
        """Which declaration gave the rows, for a person."""
        return declaration_words(self.file, is_own=self.is_own)

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
        tables = [
            {**encoded(each), "result": each.result, "rows": each.rows.document()}
            for each in self.tables
        ]
        return {**encoded(self), "result": self.result, "tables": tables}
