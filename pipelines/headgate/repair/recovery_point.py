"""Which tables are rebuilt, and to which version bronze goes back.

A table that is built from another one is not given back an earlier version: it is emptied, with
everything that is built on it, and catches up. Only bronze goes back: nothing but the source has
what it holds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from headgate.declaration.kinds import BRONZE, GOLD, SILVER
from headgate.graph.graph import Graph
from headgate.repair.past import Past, TableVersion
from headgate.tables.agreement import covers
from headgate.tables.state import State


@dataclass(frozen=True)
class Standing:
    """Where a table stands once a reset that was left open is done; ``at`` and ``past`` are None
    if it is empty then, or its log cannot be read. ``broken`` are versions that cannot be read,
    ``bad`` are damaged files, with what is wrong."""

    at: TableVersion | None = None
    past: Past | None = None
    broken: Collection[int] = ()
    bad: Mapping[str, str] = field(default_factory=dict)
    is_lost: bool = False

    @property
    def state(self) -> State:
        return self.at.state if self.at else State()

    @property
    def is_unsound(self) -> bool:
        return self.is_lost or bool(self.bad)

    def can_feed(self, n: int) -> bool:
        return self.at is None or self.past is None or self.past.can_feed(self.at, n)


@dataclass(frozen=True)
class Choice:
    """The version that bronze goes back to (None: it begins again), if it does; the paths of the
    tables that are rebuilt; and of those with a damaged entry that another table has to read."""

    bronze: TableVersion | None
    goes_back: bool
    rebuilt: frozenset[str]
    unread: frozenset[str]

    @property
    def state(self) -> State:
        """Of bronze."""
        return self.bronze.state if self.bronze else State()


def choose(graph: Graph, tables: Mapping[str, Standing], rebuilt: Iterable[str] = ()) -> Choice:
    """The least that is rebuilt, and how far bronze goes back, so that every table can go on from
    those above it. ``rebuilt`` are tables that have to be in any case."""
    (bronze,) = (node.path for node in graph.of(BRONZE))
    at = dict(tables)
    built = {node.path for node in graph if node.kind.is_built}
    anew = {*rebuilt, *(path for path in built if at[path].is_unsound)}
    if at[bronze].is_unsound:
        at[bronze] = _earlier(at[bronze])
    unread: set[str] = set()
    while True:
        anew |= graph.rebuilt_with(anew)
        at |= dict.fromkeys(anew, Standing())
        if misfits := set(_misfits(graph, at)) - anew:
            anew |= misfits
            continue
        gap = next(_gaps(graph, at), None)
        if gap is None:
            goes_back = at[bronze] is not tables[bronze]
            return Choice(at[bronze].at, goes_back, frozenset(anew), frozenset(unread))
        above, below = gap
        broken = _broken_before(at[above])
        unread |= {above} if broken else set()
        if above == bronze and (broken or not at[below].state.n):
            at[bronze] = _earlier(at[bronze], max(broken, default=0))
        else:
            anew.add(below if at[below].state.n else above)


def _earlier(table: Standing, below: int | None = None) -> Standing:
    found = table.past.earlier(below) if table.past else None
    return Standing(found, table.past, table.broken)


def _broken_before(table: Standing) -> list[int]:
    return [v for v in table.broken if table.at and v <= table.at.version]


def _misfits(graph: Graph, at: Mapping[str, Standing]) -> Iterator[str]:
    """Tables that are ahead of those above them, or that count rows of a side table which it does
    not have."""
    for node in graph:
        if not node.kind.is_built:
            continue
        held, source = at[node.path].state, at[graph.source_of(node.path).path].state
        ahead = any(held.n > at[path].state.n for path in node.upstream)
        if ahead or held.operation > source.operation:
            yield node.path
        for key, side in node.sides.items():
            aside = at[side].state
            if not covers(aside.n, aside.total.get(key, 0), held.n, held.total.get(key, 0)):
                yield node.path


def _gaps(graph: Graph, at: Mapping[str, Standing]) -> Iterator[tuple[str, str]]:
    """Pairs of a table and one below it that cannot go on from there."""
    for node in graph.of(SILVER, GOLD):
        for above in node.upstream:
            if not at[above].can_feed(at[node.path].state.n):
                yield above, node.path
