"""The tables of a reset whose intent is lost, because its entry in bronze's log is damaged.

It is then unknown which tables the intent named. A table that has processed a later batch of bronze
has carried out its reset, because no stage continues before that. Every other table may have been
named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headgate.declaration.graph import Graph
from headgate.history.savepoints.resets import Target
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.log import read_commit
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table


def perhaps_asked(
    graph: Graph, bronze: Table, states: Mapping[str, State], behind: Iterable[str]
) -> dict[str, Target]:
    """The targets of the tables ``behind``, whose generation is lower than bronze's, that may have
    been named: they are rebuilt. Tables that are not declared keep their rows but lose their
    position."""
    reset_at = _batch_of_the_reset(bronze)
    gone_on = [
        node
        for node in graph
        if reset_at is not None and node.path in states and states[node.path].n > reset_at
    ]
    # Side tables have no commits while they get no rows; they are reset with their tables.
    settled = {path for node in gone_on for path in (node.path, *node.sides.values())}
    return {path: Target(keep=path not in graph) for path in sorted({*behind} - settled)}


def _batch_of_the_reset(bronze: Table) -> int | None:
    """The batch id of bronze at the reset, from its first data commit afterwards. None if there is
    no such commit, or if bronze itself was reset to an earlier batch: other tables are then ahead
    without having continued."""
    reset = BronzePayload.of(bronze.refresh()).reset_commit
    try:
        before = read_commit(bronze.log, reset - 1)
        for version in range(reset + 1, bronze.version + 1):
            commit = read_commit(bronze.log, version)
            if commit is not None and commit.state.kind == "data":
                n = commit.state.from_n
                return n if before is not None and before.state.n == n else None
    except LogGapError:
        pass
    return None
