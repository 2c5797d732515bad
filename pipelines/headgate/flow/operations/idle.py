"""Says which of several sources the tables that read them do not wait for."""

from __future__ import annotations

from collections.abc import Collection

from headgate.declaration.contracts.operation import Document, TableOperation
from headgate.declaration.graph import Graph
from headgate.declaration.kinds import GOLD, LATE
from headgate.flow.operations.stage_table import Change, StageTable
from headgate.lake.tables.state import State


class IdleOperation(TableOperation):
    """The sources in ``idle`` are idle from here on, of those with the input log ``log``. No table
    changes, but a step ends here: rows of a source that returns are late if they are older than
    what was final before."""

    def touches(self, graph: Graph, document: Document) -> Collection[str]:
        paths = (node.path for node in graph.of(LATE, GOLD))
        return [path for path in paths if graph.numbered_by(path).name == document["log"]]

    def describe(self, document: Document) -> str:
        named = ", ".join(document["idle"])
        return f"go on without waiting for {named}" if named else "wait for all sources again"

    def named(self, document: Document) -> str:
        return "the change of the idle sources"

    def change(self, place: StageTable, state: State, document: Document) -> Change:
        return Change(state)


def idle_document(log: str, idle: Collection[str]) -> dict[str, object]:
    """The document of a change: ``idle`` are all sources that are idle from then on."""
    return {"log": log, "idle": sorted(idle)}


MEMBER = IdleOperation()
