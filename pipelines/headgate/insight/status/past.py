"""What was done about the past of a pipeline: loads of history, replays of late rows, backfills."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from headgate.declaration.model import Pipeline
from headgate.history.backfill.report import backfill_reports, taken_back_reports, with_publications
from headgate.history.loads.requests import LoadState, all_requests, load_state
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.payloads.bronze import Operation

SHOWN = 10
"""How many loads, replays and backfills are reported at most: the newest ones."""


@dataclass(frozen=True)
class ReplayReport:
    """Operation ``number`` has folded late rows of ``table`` after batch ``n``."""

    number: int
    n: int
    table: str
    by: str


@dataclass(frozen=True)
class PastBackfill:
    """``differing`` are the gold tables in which a row differs, ``end`` is None if everything that
    is final was compared. ``by_end``: windows that end in the range, not only those that lie in it.
    ``empty``: no final window was in the range. ``taken_back``: a restore has taken back what was
    published."""

    id: str
    at: datetime
    begin: datetime
    end: datetime | None
    differing: tuple[str, ...]
    published: bool
    empty: bool = False
    taken_back: bool = False
    by_end: bool = False
    computed_by: str = ""


@dataclass(frozen=True)
class PastReport:
    """Each field has the newest first."""

    loads: tuple[LoadState, ...]
    replays: tuple[ReplayReport, ...]
    backfills: tuple[PastBackfill, ...]


def past(layout: Layout, declared: Pipeline, operations: Iterable[Operation]) -> PastReport:
    """``operations`` are all operations of bronze. Raises DamagedDocumentError."""
    operations = tuple(operations)
    loads = [load_state(layout, declared.name, request) for request in all_requests(layout)]
    found = [each for each in operations if each.name == "late_replay"]
    newest = islice(backfill_reports(layout), SHOWN)
    backfills = with_publications(layout, declared.name, newest, operations)
    back = taken_back_reports(backfills, operations)
    return PastReport(
        loads=tuple(reversed(loads[-SHOWN:])),
        replays=tuple(map(_replay, reversed(found[-SHOWN:]))),
        backfills=tuple(
            PastBackfill(
                *(each.id, each.at, each.begin, each.end),
                differing=each.differing,
                published=bool(each.taken_over),
                empty=each.result == "empty",
                taken_back=each.id in back,
                by_end=each.by_end,
                computed_by=each.computed_by,
            )
            for each in backfills
        ),
    )


def _replay(operation: Operation) -> ReplayReport:
    said = operation.document
    return ReplayReport(operation.number, operation.n, said["table"], str(said.get("by", "")))
