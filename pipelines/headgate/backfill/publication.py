"""Whether a table has taken over its patch."""

from __future__ import annotations

from headgate.tables.history import lineage
from headgate.tables.table import Table


def is_void(gold: Table, number: int) -> bool:
    """Whether the operation ``number``, which a table has carried out, has changed nothing of it.
    Raises LogGapError."""
    for commit in lineage(gold):
        if commit.state.kind == "operation" and commit.state.operation == number:
            return not (commit.files or commit.removed)
        if commit.state.operation < number:
            break
    return True
