"""Which tables have applied the patches of a backfill."""

from __future__ import annotations

from headgate.declaration.contracts.operation import is_rejected
from headgate.declaration.kinds import GOLD
from headgate.history.backfill.report import Published
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.history import lineage
from headgate.lake.tables.log import Commit
from headgate.lake.tables.operation import Operation
from headgate.lake.tables.table import Table


def published_by(layout: Layout, pipeline: str, operation: Operation) -> Published:
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
    return Published(operation.number, str(document["savepoint"]), *said)


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
