"""Where every table of a pipeline stands, read so that the whole makes sense.

A running driver moves tables from the top down, and side tables before the table whose counts they
prove. Read the other way round, no table is found ahead of the one that feeds it: what is found is
where a crash might have left the tables, and stages go on from there exactly. So nothing has to
wait for a savepoint, in one process or in three.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from headgate.commands import pipeline_command
from headgate.declaration.kinds import KINDS, kind_of
from headgate.declaration.model import Pipeline
from headgate.errors import HeadgateError
from headgate.graph.graph import graph_of
from headgate.storage.layout import Layout
from headgate.tables.state import State
from headgate.tables.table import Table


@dataclass(frozen=True)
class TablePosition:
    """A table as of one of its commits: the log version of it and the state it carries."""

    table: Table
    version: int
    state: State

    @property
    def n(self) -> int:
        return self.state.n

    def total(self, key: str) -> int:
        return int(self.state.total.get(key, 0))


@dataclass(frozen=True)
class ConsistentSnapshot:
    """Every table of a pipeline at its newest commit, by its path, from gold up to the source's
    log; ``declared`` are the paths of those that are declared now."""

    tables: Mapping[str, TablePosition]
    bronze: TablePosition
    declared: Collection[str]

    @property
    def n(self) -> int:
        """The bronze batch up to which every silver and gold table has absorbed bronze."""
        return min((self.bronze.n, *(position.n for position in self.dense.values())))

    @property
    def dense(self) -> dict[str, TablePosition]:
        """The silver and gold tables that are declared: they have a commit at every step."""
        return {
            path: position
            for path, position in self.tables.items()
            if kind_of(path).is_dense and path in self.declared
        }


def snapshot(layout: Layout, pipeline: Pipeline) -> ConsistentSnapshot:
    """Read where every table stands now, declared or not, whatever a driver does meanwhile.

    Raises HeadgateError if the pipeline has no tables, LogGapError where a log is damaged.
    """
    tables = {table.name: _standing(table) for table in tables_of(layout, pipeline.name)}
    bronze = tables.get(graph_of(pipeline).head.path)
    if bronze is None:
        raise HeadgateError(
            f"{pipeline.name} has no tables under {layout.storage.root}",
            remedy=f"{pipeline_command('run', '--once')}, or name its folder with --root",
        )
    return ConsistentSnapshot(tables, bronze, frozenset(pipeline.definitions))


def tables_of(layout: Layout, pipeline: str) -> Iterator[Table]:
    """Every table that lies under a pipeline's folder, each before those that feed it."""
    for kind in reversed(KINDS):
        for name in layout.storage.folders(kind.folder):
            table = Table(layout.storage, kind.path(name), pipeline=pipeline)
            if table.exists:
                yield table


def _standing(table: Table) -> TablePosition:
    state = table.refresh()
    table.require_intact()
    return TablePosition(table, table.handle.version(), state)
