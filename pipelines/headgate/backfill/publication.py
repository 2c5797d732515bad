"""Whether a table has applied its patch."""

from __future__ import annotations

from headgate.tables.errors import LogGapError
from headgate.tables.history import lineage
from headgate.tables.log import Commit
from headgate.tables.table import Table


def is_void(gold: Table, number: int) -> bool:
    """Whether the operation ``number`` has changed nothing in a table that has carried it out.
    Raises LogGapError."""
    commit = _commit_of(gold, number)
    return commit is None or not (commit.files or commit.removed)


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
