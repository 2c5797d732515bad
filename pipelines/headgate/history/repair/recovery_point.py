"""Decides which tables are rebuilt, and to which version bronze goes back.

A table that is built from another one does not go back to an earlier version. It is emptied, with
everything that is built from it, and catches up. Only bronze goes back, because only the source has
its records.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from headgate.declaration.graph import Graph
from headgate.declaration.kinds import BRONZE, GOLD, SILVER
from headgate.history.repair.version_history import TableVersion, VersionHistory
from headgate.lake.tables.agreement import covers
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.payloads.none import NoPayload
from headgate.lake.tables.state import State


@dataclass(frozen=True)
class TableCondition:
    """A table as it will be after an unfinished reset is carried out. ``at`` and ``history`` are
    None if the table is then empty, or if its log cannot be read. ``broken`` are versions that
    cannot be read, ``bad`` are damaged files with their damage."""

    at: TableVersion | None = None
    history: VersionHistory | None = None
    broken: Collection[int] = ()
    bad: Mapping[str, str] = field(default_factory=dict)
    is_lost: bool = False

    @property
    def state(self) -> State:
        return self.at.state if self.at else State(NoPayload())

    @property
    def is_unsound(self) -> bool:
        return self.is_lost or bool(self.bad)

    def can_feed(self, n: int) -> bool:
        return self.at is None or self.history is None or self.history.can_feed(self.at, n)


@dataclass(frozen=True)
class Choice:
    """``bronze`` is the version of bronze, an earlier one if it ``goes_back`` (None: bronze begins
    with its first batch). ``rebuilt`` are the paths of tables to rebuild; ``unread`` are the paths
    of tables with a damaged log entry that another table needs."""

    bronze: TableVersion | None
    goes_back: bool
    rebuilt: frozenset[str]
    unread: frozenset[str]

    @property
    def n(self) -> int:
        """The batch id of bronze."""
        return self.bronze.state.n if self.bronze else 0

    @property
    def read(self) -> BronzePayload:
        """How far bronze has read the source."""
        return BronzePayload.of(self.bronze.state) if self.bronze else BronzePayload()


def choose(
    graph: Graph, tables: Mapping[str, TableCondition], rebuilt: Iterable[str] = ()
) -> Choice:
    """Choose the fewest tables to rebuild, and the version of bronze, so that every table can
    continue from its upstream tables. ``rebuilt`` are tables that must be rebuilt in any case."""
    (bronze,) = (node.path for node in graph.of(BRONZE))
    at = dict(tables)
    built = {node.path for node in graph if node.kind.is_built}
    rebuilding = {*rebuilt, *(path for path in built if at[path].is_unsound)}
    if at[bronze].is_unsound:
        at[bronze] = _earlier(at[bronze])
    unread: set[str] = set()
    while True:
        rebuilding |= graph.rebuilt_with(rebuilding)
        at |= dict.fromkeys(rebuilding, TableCondition())
        if inconsistent := set(_inconsistent(graph, at)) - rebuilding:
            rebuilding |= inconsistent
            continue
        gap = next(_gaps(graph, at), None)
        if gap is None:
            goes_back = at[bronze] is not tables[bronze]
            return Choice(at[bronze].at, goes_back, frozenset(rebuilding), frozenset(unread))
        above, below = gap
        broken = _broken_before(at[above])
        unread |= {above} if broken else set()
        if above == bronze and (broken or not at[below].state.n):
            at[bronze] = _earlier(at[bronze], max(broken, default=0))
        else:
            rebuilding.add(below if at[below].state.n else above)


def _earlier(table: TableCondition, below: int | None = None) -> TableCondition:
    found = table.history.earlier(below) if table.history else None
    return TableCondition(found, table.history, table.broken)


def _broken_before(table: TableCondition) -> list[int]:
    return [v for v in table.broken if table.at and v <= table.at.version]


def _inconsistent(graph: Graph, at: Mapping[str, TableCondition]) -> Iterator[str]:
    """Tables that are ahead of their upstream tables, or that count rows which their side table
    does not have."""
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


def _gaps(graph: Graph, at: Mapping[str, TableCondition]) -> Iterator[tuple[str, str]]:
    """Pairs of a table and a downstream table that cannot continue from it."""
    for node in graph.of(SILVER, GOLD):
        for above in node.upstream:
            if not at[above].can_feed(at[node.path].state.n):
                yield above, node.path
