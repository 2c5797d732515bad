"""Which version each table is given back: the newest that is sound and fits the tables around it.

From the top down, since a table never stands ahead of the one that feeds it: bronze; quarantine;
silver, which has quarantine's rows counted; gold, which goes together with its late table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headgate.declaration.kinds import BRONZE, GOLD, QUARANTINE, SILVER
from headgate.declaration.model import Pipeline
from headgate.graph.graph import Graph, Node, graph_of
from headgate.repair.past import Past, TableVersion
from headgate.tables.agreement import covers
from headgate.tables.state import State


@dataclass(frozen=True)
class View:
    """A table as it can be read. ``past`` is None where it has none: it is not there yet, it is
    about to be emptied by a reset that was left open, or its log ``is_lost``."""

    path: str
    past: Past | None = None
    is_lost: bool = False


@dataclass(frozen=True)
class Pick:
    """``moment`` is None where the table begins anew; ``stays`` says that nothing is to be done."""

    moment: TableVersion | None
    stays: bool

    @property
    def n(self) -> int:
        return self.moment.n if self.moment else 0

    @property
    def operation(self) -> int:
        return self.moment.state.operation if self.moment else 0

    def total(self, key: str) -> int:
        return int(self.moment.state.total.get(key, 0)) if self.moment else 0


Picks = dict[str, Pick]


@dataclass
class Bounds:
    """Versions and batches below which some tables have to stay."""

    versions: dict[str, int] = field(default_factory=dict)
    batches: dict[str, int] = field(default_factory=dict)


def choose(pipeline: Pipeline, views: Mapping[str, View], bounds: Bounds) -> Picks:
    """What each table of a pipeline is given back, by its path. Tightens ``bounds`` as far as it
    takes for every table to go on from the one above it."""
    graph = graph_of(pipeline)
    while True:
        picks = _Chooser(graph, views, bounds).picks()
        if not _tighten(bounds, graph, views, picks):
            return picks


class _Chooser:
    def __init__(self, graph: Graph, views: Mapping[str, View], bounds: Bounds) -> None:
        self._graph = graph
        self._views = views
        self._bounds = bounds

    def picks(self) -> Picks:
        picks: Picks = {}
        for node in self._graph.of(BRONZE, QUARANTINE, SILVER):
            upto = min((picks[path].n for path in node.upstream), default=None)
            counts = [(key, picks[side]) for key, side in node.sides.items()]
            picks[node.path] = self._newest(node.path, upto, counts=counts)
        for node in self._graph.of(GOLD):
            silver, bronze = node.upstream[0], self._graph.source_of(node.path).path
            picks |= self._gold(node, picks[silver], picks[bronze])
        return picks

    def _gold(self, node: Node, silver: Pick, bronze: Pick) -> Picks:
        gold, late = node.path, node.sides["late"]
        folded = self._newest(gold, silver.n, operation=bronze.operation)
        aside = self._newest(late, silver.n)
        known = covers(aside.n, aside.total("late"), folded.n, folded.total("late"))
        if folded.stays and aside.stays and known:
            return {gold: folded, late: aside}
        while folded.moment is not None:
            aside = self._newest(late, folded.n)
            if aside.total("late") == folded.total("late"):
                return {gold: folded, late: aside}
            folded = self._newest(gold, folded.n - 1, operation=bronze.operation)
        return {gold: folded, late: self._newest(late, 0)}

    def _newest(
        self,
        path: str,
        upto: int | None = None,
        *,
        counts: Sequence[tuple[str, Pick]] = (),
        operation: int | None = None,
    ) -> Pick:
        view = self._views[path]
        if view.past is None:
            return Pick(None, stays=not view.is_lost)

        def accepts(state: State) -> bool:
            return (
                (upto is None or state.n <= upto)
                and state.n < self._bounds.batches.get(path, state.n + 1)
                and (operation is None or state.operation <= operation)
                and all(_counted(state, *each) for each in counts)
            )

        below = self._bounds.versions.get(path)
        found = view.past.newest(accepts, below)
        return Pick(found, found is not None and found.version == view.past.start)


def _counted(state: State, key: str, side: Pick) -> bool:
    return covers(side.n, side.total(key), state.n, int(state.total.get(key, 0)))


def _tighten(bounds: Bounds, graph: Graph, views: Mapping[str, View], picks: Picks) -> bool:
    """Whether a table cannot go on from the one above it; then one of them has to go back more."""
    followed = ((path, node.path) for node in graph.of(SILVER, GOLD) for path in node.upstream)
    for above, below in followed:
        upstream, pick = views[above], picks[below]
        moment = picks[above].moment
        if upstream.past is None or moment is None:
            continue
        reached = upstream.past.reaches(moment.version, pick.n)
        if reached.broken is not None:
            bounds.versions[above] = reached.broken
            return True
        if reached.is_merged or (reached.n is not None and reached.n != pick.n):
            bounds.batches[below] = pick.n
            return True
    return False
