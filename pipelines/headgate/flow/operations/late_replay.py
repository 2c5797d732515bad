"""Folds late pairs of a gold table into its final rows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from headgate.declaration.contracts.operation import Document, TableOperation
from headgate.declaration.graph import Graph
from headgate.declaration.kinds import GOLD, LATE
from headgate.flow.operations.stage_table import Change, StageTable
from headgate.lake.tables.state import State


def replay_document(
    table: str,
    begin: int | None = None,
    end: int | None = None,
    keys: Mapping[str, str | None] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """The document of a replay of late rows (``LateReplayOperation``) with ``more`` entries."""
    return {"table": table, "from": begin, "to": end, "keys": dict(keys or {}), **more}


class LateReplayOperation(TableOperation):
    """``{"table": NAME, "from": MICROS or null, "to": MICROS or null, "keys": {NAME: TEXT}}``: the
    pairs whose event times are in ``[from, to)`` and that have these keys; with ``offsets``, only
    those of rows from the first to the last offset. Further entries name the requester. The stage
    of the table computes the new rows (``StageTable.replay``)."""

    def touches(self, graph: Graph, document: Document) -> Collection[str]:
        name = document["table"]
        if LATE.path(name) not in graph:  # removed, or a rollup now
            return []
        return [LATE.path(name), GOLD.path(name), *graph.rollups_of(GOLD.path(name))]

    def describe(self, document: Document) -> str:
        return "fold late rows into its final windows"

    def named(self, document: Document) -> str:
        load = document.get("load")
        return f"the late rows of the load {load}" if load else "the replay of late rows"

    def change(self, place: StageTable, state: State, document: Document) -> Change:
        return Change(state) if place.replay is None else place.replay(place, state, document)

    def given_up(self, place: StageTable, state: State, document: Document) -> Change:
        return Change(state) if place.give_up is None else place.give_up(place, state, document)


MEMBER = LateReplayOperation()
