"""The last intent of a reset, where its entry in bronze's log is damaged.

Nobody knows then which tables it named. A table that has absorbed a batch of bronze that came after
it has nothing left to do: no stage goes on before that. Every other one may have been named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headgate.declaration.kinds import GOLD, SILVER
from headgate.declaration.model import Pipeline
from headgate.graph.graph import graph_of
from headgate.savepoints.resets import Target
from headgate.tables.errors import LogGapError
from headgate.tables.log import read_commit
from headgate.tables.state import State
from headgate.tables.table import Table


def perhaps_asked(
    pipeline: Pipeline, bronze: Table, states: Mapping[str, State], behind: Iterable[str]
) -> dict[str, Target]:
    """What is done to those tables, of lower generation than bronze, that may have been named: they
    are built anew, and those that nobody declares lose their place."""
    reset_at = _batch_of_the_reset(bronze)
    gone_on = {p for p, s in states.items() if reset_at is not None and s.n > reset_at}
    # Side tables stand still where there is nothing for them; they go back with their tables.
    settled = {
        path
        for node in graph_of(pipeline).of(SILVER, GOLD)
        if node.path in gone_on
        for path in (node.path, *node.sides.values())
    }
    asked = sorted(set(behind) - settled)
    return {path: Target(keep=path not in pipeline.definitions) for path in asked}


def _batch_of_the_reset(bronze: Table) -> int | None:
    """How far bronze was, as its first batch since tells; None where there is none."""
    try:
        for version in range(bronze.refresh().reset_commit + 1, bronze.handle.version() + 1):
            commit = read_commit(bronze.storage, version)
            if commit is not None and commit.state.kind == "data":
                return commit.state.from_n
    except LogGapError:
        pass
    return None
