"""The tables of a declaration as a graph: their upstream tables, and the jobs that write them.

Only this module knows the tables of a pipeline, their order, and their dependencies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from headgate.declaration.contracts.source import connector_of
from headgate.declaration.kinds import (
    BRONZE,
    CONTROL,
    GOLD,
    INPUTS,
    LATE,
    PUBLICATION,
    QUARANTINE,
    REJECTED,
    SILVER,
    Kind,
    input_log_of,
    name_of,
)
from headgate.declaration.model import Pipeline, Publication

Layer = Literal["bronze", "silver", "gold"]

_PUBLISHED = {"gold": GOLD, "late": LATE, "quarantine": QUARANTINE, "gate": GOLD}


@dataclass(frozen=True)
class Node:
    """A table. ``layer`` is the job that writes it; ``upstream`` has the paths of the tables whose
    commits it follows; an input log is the first of these.

    ``sides`` has the side tables to which this one sends rows, by the key under which its commits
    count those rows. ``side_of`` of a side table is the table with which it is rebuilt.
    """

    kind: Kind
    name: str
    layer: Layer
    upstream: tuple[str, ...] = ()
    sides: Mapping[str, str] = field(default_factory=dict)
    side_of: str | None = None

    @property
    def path(self) -> str:
        return self.kind.path(self.name)


class Graph:
    """Every table that a pipeline declares, each after its upstream tables, and each side table
    before the table that counts its rows. Iteration yields the nodes in this order."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._nodes = {node.path: node for node in nodes}

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    def __getitem__(self, path: str) -> Node:
        return self._nodes[path]

    def __contains__(self, path: str) -> bool:
        return path in self._nodes

    def of(self, *kinds: Kind) -> tuple[Node, ...]:
        return tuple(node for node in self if node.kind in kinds)

    def written_by(self, layers: Collection[str]) -> tuple[Node, ...]:
        """The tables that a job of some layers writes."""
        return tuple(node for node in self if node.layer in layers)

    def read_by(self, layers: Collection[str]) -> tuple[Node, ...]:
        """The tables of other jobs that a job of some layers follows."""
        above = {path for node in self.written_by(layers) for path in node.upstream}
        return tuple(node for node in self if node.path in above and node.layer not in layers)

    def numbered_by(self, path: str) -> Node:
        """The table that has given a table its batch ids: the bronze table of its source, or the
        input log of its sources if it reads several. Raises KeyError for the decisions."""
        node = self[path]
        if node.kind.numbers_batches:
            return node
        if not node.upstream:
            return self[BRONZE.path(node.name)]
        # An input log comes before the tables that are read by it.
        return self.numbered_by(node.upstream[0])

    def sources_of(self, path: str) -> tuple[str, ...]:
        """The names of the sources of a table. Raises KeyError for the decisions."""
        node = self.numbered_by(path)
        return tuple(map(name_of, node.upstream)) if node.kind == INPUTS else (node.name,)

    def rollups_of(self, path: str) -> tuple[str, ...]:
        """The gold tables that read a gold table, or one that reads it, in the order in which a
        correction reaches them."""
        found = [path]
        for node in self.of(GOLD):
            if node.path not in found and not {*found}.isdisjoint(node.upstream):
                found.append(node.path)
        return tuple(found[1:])

    def rebuilt_with(self, paths: Iterable[str]) -> frozenset[str]:
        """Some tables and their downstream tables. A side table is rebuilt with its table.
        Publications are not rebuilt."""
        found = set(paths)
        for node in self:
            above = (node.side_of,) if node.side_of else node.upstream
            if node.kind.is_built and found.intersection(above):
                found.add(node.path)
        # A side table comes before its table.
        sides = {node.path for node in self if node.side_of in found}
        return frozenset(found | sides)


def graph_of(pipeline: Pipeline) -> Graph:
    return Graph(_nodes(pipeline))


def _input_logs(pipeline: Pipeline) -> Iterator[Node]:
    """An input log for each set of several sources that a gold table reads."""
    sets = {tuple(sorted({*gold.sources})) for gold in pipeline.gold.values()}
    for sources in sorted(sets):
        if len(sources) > 1:
            above = tuple(map(BRONZE.path, sources))
            yield Node(INPUTS, name_of(input_log_of(sources)), "bronze", above)


def _nodes(pipeline: Pipeline) -> Iterator[Node]:
    yield Node(CONTROL, "decisions", "bronze")
    for name, source in pipeline.sources.items():
        for kept in connector_of(source).keeps:
            yield Node(kept, name, "bronze")
        yield Node(BRONZE, name, "bronze")
    yield from _input_logs(pipeline)
    for name in pipeline.sources:
        bronze = BRONZE.path(name)
        yield Node(QUARANTINE, name, "silver", (bronze,), side_of=bronze)
    for name, silver in pipeline.silver.items():
        above = (BRONZE.path(silver.source),)
        sides = {"quarantined": QUARANTINE.path(silver.source)}
        if silver.suite is not None:
            sides["rejected"] = REJECTED.path(name)
            yield Node(REJECTED, name, "silver", above, side_of=SILVER.path(name))
        yield Node(SILVER, name, "silver", above, sides)
    for name, gold in pipeline.gold.items():
        if gold.reads is not None:
            yield Node(GOLD, name, "gold", (GOLD.path(gold.reads),))
            continue
        several = len({*gold.sources}) > 1
        logs = (input_log_of(gold.sources),) if several else ()
        inputs, late = (*logs, *map(SILVER.path, gold.inputs)), LATE.path(name)
        yield Node(LATE, name, "gold", inputs, side_of=GOLD.path(name))
        yield Node(GOLD, name, "gold", inputs, {"late": late})
    for name, publication in pipeline.publish.items():
        layer: Layer = "silver" if publication.layer == "quarantine" else "gold"
        yield Node(PUBLICATION, name, layer, (published(publication),))


def published(publication: Publication) -> str:
    """The path of the table whose rows, or events at its gate, a publication sends."""
    return _PUBLISHED[publication.layer].path(publication.table)
