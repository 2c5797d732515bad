"""Requests operations and carries them out at their place among the batches.

The intent is a commit of bronze with the next number, so it is fenced and ordered: it takes place
after bronze's current batch id. Every later commit of bronze repeats all operations. A table must
carry out each operation with a number higher than its own, before it processes a later batch.
Operations are never marked as done and never removed (docs/exactly-once.md).
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
from headgate.lake.tables.history import Watermarks
from headgate.lake.tables.payloads.bronze import BronzePayload, Operation
from headgate.lake.tables.state import commit_time, just_after
from headgate.lake.tables.table import Table


def intend_operation(
    bronze: Table, graph: Graph, name: str, document: Document, now: datetime
) -> None:
    """Request an operation. Bronze's job does this between batches. Nothing is requested if the
    operation touches no table. Raises UnknownOperationError, CommitRefusedError, FencedError."""
    if not operation_named(name).touches(graph, document):
        return
    held = bronze.refresh()
    state = held.held("operation", bronze.epoch)
    payload = BronzePayload.of(state)
    operation = Operation(held.operation + 1, name, held.n, document, payload.watermark)
    payload = replace(payload, operations=(*payload.operations, operation))
    bronze.commit(replace(state, payload=payload, operation=operation.number, at=commit_time(now)))
    failpoint("operation.intended")


def tell_extended(bronze: Table, made_as: Mapping[str, tuple[str, str]], now: datetime) -> None:
    """Tell all operations that tables get fields inside of columns, in one commit of bronze; no
    commit if that changes no operation. ``made_as`` has the definitions of the tables before and
    after. Call this before the tables get the fields. Raises as ``intend_operation``."""
    state = bronze.refresh().held("extend", bronze.epoch)
    payload = BronzePayload.of(state)
    told = tuple(
        replace(each, document=operation_named(each.name).extended(each.document, made_as))
        for each in payload.operations
    )
    if told != tuple(payload.operations):
        payload = replace(payload, operations=told)
        bronze.commit(replace(state, payload=payload, at=commit_time(now)))
        failpoint("operation.extended")


@dataclass(frozen=True)
class Operations:
    """The operations of a pipeline, in order, as of the last refresh of its bronze table."""

    asked: Sequence[Operation]
    graph: Graph

    def of(self, tables: Iterable[Table]) -> Operations:
        """The operations that some tables, as last refreshed, have not carried out."""
        of = {table.name: table.state.operation for table in tables}
        awaited = (o for o in self.asked if any(self._awaits(o, *each) for each in of.items()))
        return Operations(tuple(awaited), self.graph)

    def watermarks(self, path: str) -> Watermarks:
        """The batch ids after which operations take place, with the watermark of a table's source
        at each; None if it is not known. Operations have that of the first source."""
        is_of_head = self.graph.source_of(path) == self.graph.head
        return {each.n: each.watermark if is_of_head else None for each in self.asked}

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
                _carry_out(operation, place, now)

    def _awaits_of(self, operation: Operation, place: StageTable) -> bool:
        return self._awaits(operation, place.table.name, place.table.state.operation)

    def _awaits(self, operation: Operation, path: str, done: int) -> bool:
        return operation.number > done and self._touches(operation, path)

    def _touches(self, operation: Operation, path: str) -> bool:
        return path in operation_named(operation.name).touches(self.graph, operation.document)


def _carry_out(operation: Operation, place: StageTable, now: datetime) -> None:
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
    change = (kind.given_up if is_given_up else kind.change)(place, state, operation.document)
    if is_done and not (change.add or change.remove or change.moved):
        return
    failpoint("operation.staged")
    table.commit(change.state, add=change.add, remove=change.remove, moved=change.moved)
    failpoint("operation.table_done")


def tell_rejected(bronze: Table, gold: Table, document: Mapping[str, Any], now: datetime) -> None:
    """Mark an operation, which a gate holds, as rejected for a gold table, in one commit of bronze:
    the table carries it out without a change. Every later commit of bronze repeats the mark, so a
    rebuild decides the same. No commit if the table has carried the operation out, or was reset,
    since it was rejected. Raises CommitRefusedError, FencedError.

    The request comes from the job that writes the table, and only while that job no longer tries to
    carry the operation out: otherwise the table could change after bronze's commit.
    """
    number, held = document["operation"], gold.refresh()
    if held.operation >= number or held.generation != document["generation"]:
        return
    state = bronze.refresh().held("extend", bronze.epoch)
    payload = BronzePayload.of(state)
    said = {name: document[name] for name in ("by", "reason", "at")}

    def told(found: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**found, REJECTED_FOR: {**found.get(REJECTED_FOR, {}), document["table"]: said}}

    marked = tuple(
        replace(each, document=told(each.document))
        if each.number == number and not is_rejected(each.document, GOLD.path(document["table"]))
        else each
        for each in payload.operations
    )
    if marked != tuple(payload.operations):
        payload = replace(payload, operations=marked)
        bronze.commit(replace(state, payload=payload, at=commit_time(now)))
        failpoint("operation.rejected")
