"""Makes the open windows of every gold table final, because input has ended."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from headgate.declaration.contracts.operation import Document, TableOperation
from headgate.declaration.graph import Graph
from headgate.declaration.kinds import GOLD
from headgate.flow.operations.stage_table import Change, StageTable
from headgate.lake.tables.data_file import FINAL, STATE
from headgate.lake.tables.decisions import Decisions, Position
from headgate.lake.tables.open_rows import open_rows
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.state import State, add_counts

NAME = "drain"


def closing(held: GoldPayload, number: int, last: int | None) -> GoldPayload:
    """The payload after a drain, by its number, that has made results up to the end ``last``
    final; None if it has made none final."""
    ends = (last, held.closed_through)
    closed_through = max((end for end in ends if end is not None), default=None)
    drains = held.drains
    if closed_through is not None and closed_through != held.closed_through:
        drains = {**drains, str(number): closed_through}
    return replace(held, closed_through=closed_through, drains=drains)


class DrainOperation(TableOperation):
    """The watermark does not change. A later row for a drained window is late, with the reason
    ``closed``, so gold records the window end up to which windows are drained."""

    closes = True

    def touches(self, graph: Graph, document: Document) -> Collection[str]:
        return [node.path for node in graph.of(GOLD)]

    def describe(self, document: Document) -> str:
        return "make its open windows final"

    def named(self, document: Document) -> str:
        return "the drain"

    def change(self, place: StageTable, state: State, document: Document) -> Change:
        from pyspark.sql import functions as F

        from headgate.lake.tables.staging import stage

        if place.drain is not None:
            return place.drain(place, state)
        opened = open_rows(place.table)
        if not opened.live or place.end is None:
            return Change(state)
        rows = place.rows(opened.files)
        last = rows.agg(F.max(place.end)).first()
        final = rows.drop(STATE).withColumn(FINAL, F.lit(True))
        staged = stage(place.table, state, final, time_column=place.time_column)
        payload = closing(GoldPayload.of(state), state.operation, last[0] if last else None)
        payload = replace(payload, open=0)
        total = add_counts(state.total, {"final": sum(f.rows for f in opened.live)})
        state = replace(state, payload=payload, changed_at=state.at, total=total)
        return Change(state, add=staged, remove=opened.live)


def is_drained(decisions: Decisions, position: Position) -> bool:
    """Whether no batch and no other operation came after a drain: another one would change no
    table. ``position`` is that of every source now."""
    if not decisions.operations:
        return False
    last = decisions.operations[-1]
    in_force = all(decisions.is_in_force(last.number, source) for source in position)
    return in_force and last.kind == NAME and _batches(last.position) == _batches(position)


def _batches(position: Position) -> dict[str, int]:
    return {source: at.n for source, at in position.items()}


MEMBER = DrainOperation()
