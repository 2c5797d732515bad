"""What was done about the past of a pipeline: loads of history, replays of late rows, backfills."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from headgate.declaration.graph import Graph, graph_of
from headgate.declaration.kinds import GOLD
from headgate.declaration.model import Pipeline
from headgate.history.backfill.report import backfill_reports, taken_back_reports, with_publications
from headgate.history.loads.requests import LoadState, load_state, loads_of
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import Decision, Decisions

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


def past(layout: Layout, declared: Pipeline, decisions: Decisions) -> PastReport:
    """Raises DamagedDocumentError."""
    loads = [load_state(layout, declared.name, load) for load in loads_of(decisions)]
    graph = graph_of(declared)
    replays = (each for each in decisions.operations if each.kind == "late_replay")
    found = [each for each in replays if GOLD.path(each.document["table"]) in graph]
    newest = islice(backfill_reports(layout), SHOWN)
    backfills = with_publications(layout, declared.name, newest, decisions)
    back = taken_back_reports(backfills, decisions)
    return PastReport(
        loads=tuple(reversed(loads[-SHOWN:])),
        replays=tuple(_replay(graph, each) for each in reversed(found[-SHOWN:])),
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


def _replay(graph: Graph, decision: Decision) -> ReplayReport:
    said = decision.document
    source = graph.numbered_by(GOLD.path(said["table"])).name
    at = decision.position.get(source)
    n = at.n if at else 0
    return ReplayReport(decision.number, n, said["table"], str(said.get("by", "")))
