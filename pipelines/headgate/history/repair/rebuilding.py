"""Decides which tables are rebuilt.

A table that is built from another one does not go back to an earlier version. It is emptied, with
everything that is built from it, and catches up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from headgate.declaration.graph import Graph
from headgate.declaration.kinds import BRONZE, GOLD, SILVER, kind_of
from headgate.lake.tables.agreement import followed
from headgate.lake.tables.decisions import DECISIONS
from headgate.lake.tables.row_counts import covers
from headgate.lake.tables.state import State


def rebuilt(
    graph: Graph,
    states: Mapping[str, State],
    damaged: Iterable[str],
    can_feed: Callable[[str, int], bool],
) -> tuple[frozenset[str], frozenset[str]]:
    """The fewest tables to rebuild, so that every table can continue from its upstream tables, or
    be built from them; and the tables whose logs have lost an entry that another table needs. If
    a bronze table is among the latter, no table that is built from it can be rebuilt.

    ``damaged`` are tables that must be rebuilt in any case. ``can_feed`` tells whether the log of a
    table has all batches after a batch id.
    """
    found, unread = set(damaged), set[str]()
    while True:
        found |= graph.rebuilt_with(found)
        at = {path: state for path, state in states.items() if path not in found}
        if inconsistent := set(_inconsistent(graph, at)) - found:
            found |= inconsistent
        elif (gap := next(_gaps(graph, at, can_feed), None)) is None:
            return frozenset(found), frozenset(unread)
        elif gap[1] not in found:
            found.add(gap[1])
        else:
            unread.add(gap[0])
            if kind_of(gap[0]) == BRONZE:
                return frozenset(found), frozenset(unread)
            found.add(gap[0])


def _inconsistent(graph: Graph, at: Mapping[str, State]) -> Iterator[str]:
    """Tables that are ahead of their upstream tables, or that count rows which their side table
    does not have."""
    for node in graph:
        if node.path in at and node.kind.is_built:
            held, decided = at[node.path], _state(at, DECISIONS).n
            ahead = any(n > _state(at, path).n for path, n in followed(graph, node, held))
            if ahead or held.operation > decided:
                yield node.path
            for key, side in node.sides.items():
                aside = _state(at, side)
                if not covers(aside.n, aside.total.get(key, 0), held.n, held.total.get(key, 0)):
                    yield node.path


def _gaps(
    graph: Graph, at: Mapping[str, State], can_feed: Callable[[str, int], bool]
) -> Iterator[tuple[str, str]]:
    """Pairs of a table and a downstream table that cannot continue from its entries."""
    for node in graph.of(SILVER, GOLD):
        for above, n in followed(graph, node, _state(at, node.path)):
            if above in at and n < at[above].n and not can_feed(above, n):
                yield above, node.path


def _state(at: Mapping[str, State], path: str) -> State:
    return at.get(path) or State.empty(path)
