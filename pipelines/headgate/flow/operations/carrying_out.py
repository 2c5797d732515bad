"""Decides on operations, and carries them out at their place among the batches.

A decision is a row of the control table, with a position among the batches of every source. A table
must carry out each operation in force with a number higher than its own, before it processes a
later batch of its source. Operations are never marked as done and never removed
(docs/exactly-once.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from headgate.declaration.contracts.operation import (
    OPERATIONS,
    REJECTED_FOR,
    Document,
    is_rejected,
    operation_named,
)
from headgate.declaration.graph import Graph
from headgate.declaration.kinds import GOLD
from headgate.failpoints import failpoint
from headgate.flow.operations.stage_table import StageTable
from headgate.lake.tables.decisions import AMENDMENT, ControlTable, Decision, Operation, Position
from headgate.lake.tables.history import Watermarks
from headgate.lake.tables.state import commit_time, just_after
from headgate.lake.tables.table import Table

REJECTION = "rejection"
"""The kind of a request that rejects an operation. Its document names the ``table`` and the
``operation``, at a ``generation`` of the table, and says ``by`` whom, why and when (``reason``,
``at``)."""


def decide_operation(
    control: ControlTable,
    graph: Graph,
    name: str,
    document: Document,
    position: Position,
    now: datetime,
    request: str | None = None,
) -> Decision | None:
    """Decide on an operation, between two batches. Nothing is decided if it touches no table.
    ``position`` is that of every source. Raises UnknownOperationError, CommitRefusedError,
    FencedError."""
    if not operation_named(name).touches(graph, document):
        return None
    decision = control.append(name, document, position, now, request=request)
    failpoint("operation.intended")
    return decision


def amend_extended(
    control: ControlTable,
    made_as: Mapping[str, tuple[str, str]],
    position: Position,
    now: datetime,
) -> None:
    """Amend the documents of operations for tables that get fields inside of columns, in one
    decision; none if no document changes. ``made_as`` has the definitions of the tables before and
    after. Call this before the tables get the fields. Raises as ``decide_operation``."""
    changed = {
        each.number: document
        for each in control.refresh().operations
        if (document := operation_named(each.kind).extended(each.document, made_as))
        != each.document
    }
    if changed:
        amend(control, changed, position, now)
        failpoint("operation.extended")


def amend_rejected(
    control: ControlTable, gold: Table, document: Document, position: Position, now: datetime
) -> None:
    """Amend the document of an operation, which a gate holds: it is rejected for a gold table, and
    the table carries it out without a change. A rebuild decides the same. There is no decision if
    the table has carried the operation out, or was reset, since it was rejected. Raises as
    ``decide_operation``.

    The request comes from the job that writes the table, and only while that job no longer tries to
    carry the operation out: otherwise the table could change after the decision.
    """
    number, held = document["operation"], gold.refresh()
    if held.operation >= number or held.generation != document["generation"]:
        return
    said = {name: document[name] for name in ("by", "reason", "at")}
    for each in control.refresh().operations:
        if each.number == number and not is_rejected(each.document, GOLD.path(document["table"])):
            rejected = {**each.document.get(REJECTED_FOR, {}), document["table"]: said}
            amend(control, {number: {**each.document, REJECTED_FOR: rejected}}, position, now)
            failpoint("operation.rejected")


def amend(
    control: ControlTable, documents: Mapping[int, Any], position: Position, now: datetime
) -> None:
    """Give earlier decisions other documents, by their numbers, in one decision. Raises as
    ``decide_operation``."""
    texts = {str(number): document for number, document in documents.items()}
    control.append(AMENDMENT, {"documents": texts}, position, now)


@dataclass(frozen=True)
class Operations:
    """The operations in force for the tables of one source, in order. ``replays`` are the batch ids
    of the replays of refused records into its bronze table. ``read_by_logs`` are as in
    ``Decisions``."""

    asked: Sequence[Operation]
    graph: Graph
    replays: frozenset[int] = frozenset()
    read_by_logs: frozenset[int] = frozenset()

    def of(self, tables: Iterable[Table]) -> Operations:
        """The operations that some tables, as last refreshed, have not carried out."""
        of = {table.name: table.state.operation for table in tables}
        awaited = (o for o in self.asked if any(self._awaits(o, *each) for each in of.items()))
        return Operations(tuple(awaited), self.graph, self.replays)

    def up_to(self, number: int) -> Operations:
        """Those up to a number."""
        asked = tuple(each for each in self.asked if each.number <= number)
        return Operations(asked, self.graph, self.replays)

    @property
    def watermarks(self) -> Watermarks:
        """The batch ids after which operations take place, with the watermarks at each."""
        return {each.n: each.watermarks for each in self.asked}

    def stops(self, upto: int) -> tuple[int, ...]:
        """The batch ids at which the steps of a stage up to ``upto`` end. No step passes an
        operation."""
        return (*(each.n for each in self.asked if each.n < upto), upto)

    def carry_out(self, places: Sequence[StageTable], n: int, now: datetime) -> None:
        """Carry out the open operations of a stage's tables, one table after the other, when the
        stage is at batch id ``n``. Side tables come before the table that counts their rows.

        Raises UnknownOperationError, CommitRefusedError, FencedError.
        """
        for operation in self.asked:
            awaited = [p for p in places if operation.n <= n and self._awaits_of(operation, p)]
            if awaited and is_rejected(operation.document, awaited[0].table.name):
                # A side table may have carried it out before it was rejected.
                awaited = [p for p in places if self._touches(operation, p.table.name)]
            for place in awaited:
                _carry_out(operation, place, now, closes=self._closes(operation, place))

    def _awaits_of(self, operation: Operation, place: StageTable) -> bool:
        return self._awaits(operation, place.table.name, place.table.state.operation)

    def _awaits(self, operation: Operation, path: str, done: int) -> bool:
        return operation.number > done and self._touches(operation, path)

    def _touches(self, operation: Operation, path: str) -> bool:
        return path in operation_named(operation.name).touches(self.graph, operation.document)

    def _closes(self, operation: Operation, place: StageTable) -> bool:
        """Whether an operation makes the open rows of a table final. Those of a rollup stay open if
        it was rejected for a table from which the rollup has its rows."""
        path = place.table.name
        above = (n.path for n in self.graph.of(GOLD) if path in self.graph.rollups_of(n.path))
        is_given_up = any(is_rejected(operation.document, each) for each in above)
        return operation_named(operation.name).closes and not is_given_up


def _carry_out(operation: Operation, place: StageTable, now: datetime, *, closes: bool) -> None:
    table = place.table
    held = table.refresh()
    is_done = held.operation >= operation.number
    is_given_up = is_rejected(operation.document, table.name)
    if is_done and not is_given_up:
        return
    state = held.held("operation", table.epoch)
    at = commit_time(just_after(held, now))
    state = replace(state, operation=max(held.operation, operation.number), at=at)
    kind = OPERATIONS[operation.name]
    if place.follow is not None:
        change = place.follow(place, state, closes=closes)
    else:
        change = (kind.given_up if is_given_up else kind.change)(place, state, operation.document)
    if is_done and not (change.add or change.remove or change.moved):
        return
    failpoint("operation.staged")
    table.commit(change.state, add=change.add, remove=change.remove, moved=change.moved)
    failpoint("operation.table_done")
