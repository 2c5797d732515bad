"""The report of a backfill, its document, and what is published of it.

The reports are documents below the pipeline's own folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from headgate.declaration.contracts.operation import is_rejected
from headgate.declaration.files import declaration_words
from headgate.declaration.kinds import GOLD
from headgate.errors import HeadgateError
from headgate.history.backfill.selection import BACKFILL
from headgate.history.savepoints.holds import FOLDER
from headgate.lake.storage.documents import Document, encoded, ids_in, read_value, write_document
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import Decision, Decisions
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.history import lineage
from headgate.lake.tables.log import Commit
from headgate.lake.tables.row_changes import NO_ROWS, RowChanges
from headgate.lake.tables.table import Table

BackfillResult = Literal["equal", "differs", "empty"]
"""``empty``: no final window is in the range, so nothing was compared."""
KEPT = 50
"""The number of reports that are kept."""


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
    def result(self) -> BackfillResult:
        if self.differing or self.live != self.backfilled:
            return "differs"
        return "equal" if self.windows else "empty"


@dataclass(frozen=True)
class PublishedBackfill:
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
class BackfillReport:
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
    published: PublishedBackfill | None = None
    by_end: bool = False
    file: str = ""
    is_own: bool = True

    @property
    def computed_by(self) -> str:
        """Which declaration gave the rows, for a person."""
        return declaration_words(self.file, is_own=self.is_own)

    @property
    def result(self) -> BackfillResult:
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


def publication_of(layout: Layout, pipeline: str, operation: Decision) -> PublishedBackfill:
    """What the operation of a backfill has done so far."""
    document = operation.document
    waiting, rejected, void = list[str](), list[str](), list[str]()
    for name in document["tables"]:
        gold = Table(layout.storage, GOLD.path(name), pipeline=pipeline)
        if gold.refresh().operation < operation.number:
            waiting.append(name)
        elif is_rejected(document, gold.name):
            rejected.append(name)
        elif not may_have_changed(gold, operation.number):
            void.append(name)
    said = (tuple(void), tuple(waiting), tuple(rejected))
    return PublishedBackfill(operation.number, str(document["savepoint"]), *said)


def may_have_changed(gold: Table, number: int) -> bool:
    """Whether the operation ``number`` may have changed a table that has carried it out. True if
    the table's log no longer has its commit."""
    try:
        commit = _commit_of(gold, number)
    except LogGapError:
        return True
    return commit is None or bool(commit.files or commit.removed)


def _commit_of(gold: Table, number: int) -> Commit | None:
    for commit in lineage(gold):
        if commit.state.kind == "operation" and commit.state.operation == number:
            return commit
        if commit.state.operation < number:
            break
    return None


def write_report(layout: Layout, report: BackfillReport) -> None:
    """Write a report, and remove the oldest ones."""
    write_document(layout.storage, f"{FOLDER}/{report.id}.json", report.document())
    for id_ in ids_in(layout.storage, FOLDER)[:-KEPT]:
        layout.storage.remove(f"{FOLDER}/{id_}.json")


def backfill_reports(layout: Layout) -> Iterator[BackfillReport]:
    """The reports that are kept and can be read, newest first."""
    for id_ in reversed(ids_in(layout.storage, FOLDER)):
        with suppress(HeadgateError):
            found = read_value(layout.storage, f"{FOLDER}/{id_}.json", BackfillReport)
            if found is not None:
                yield found


def with_publications(
    layout: Layout, pipeline: str, found: Iterable[BackfillReport], decisions: Decisions
) -> tuple[BackfillReport, ...]:
    """The reports with what is published of them now: a command that was killed, or did not wait,
    has not recorded it. Raises HeadgateError."""
    asked = {str(o.document["backfill"]): o for o in decisions.operations if o.kind == BACKFILL}

    def now(report: BackfillReport) -> BackfillReport:
        operation, said = asked.get(report.id), report.published
        if operation is None or (said is not None and not said.waiting):
            return report
        return replace(report, published=publication_of(layout, pipeline, operation))

    return tuple(map(now, found))


def taken_back_reports(found: Iterable[BackfillReport], decisions: Decisions) -> frozenset[str]:
    """The ids of the reports whose backfill was published and then undone by a restore."""
    ids = {
        each.document["backfill"]
        for each in decisions.of(BACKFILL)
        if any(decisions.is_in_force(each.number, source) for source in each.position)
    }
    return frozenset(each.id for each in found if each.published and each.id not in ids)
