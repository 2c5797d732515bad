"""A consistent snapshot of the positions of a pipeline's tables.

A running driver updates upstream tables first, and side tables before the table that counts their
rows. The snapshot reads them in the opposite order, so no table is ahead of its upstream. The
result is a state in which a crash could have left the tables, and from which stages continue
exactly. So no driver has to wait for a savepoint.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import KINDS, kind_of
from headgate.declaration.model import Pipeline
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.errors import NoTablesError
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset


@dataclass(frozen=True)
class TablePosition:
    """A table at one of its commits: the log version and the state of the commit."""

    table: Table
    version: int
    state: State

    @property
    def n(self) -> int:
        return self.state.n

    def total(self, key: str) -> int:
        return int(self.state.total.get(key, 0))

    @property
    def handle(self) -> DeltaTable:
        """The handle of delta-rs, at ``version``. Raises LogGapError."""
        handle = self.table.handle
        if handle.version() == self.version:
            return handle
        return DeltaTable(self.table.storage.uri(), version=self.version)

    def dataset(self) -> Dataset:
        """The rows of the version, for Arrow and DuckDB. This reads no row yet."""
        return self.handle.to_pyarrow_dataset()


@dataclass(frozen=True)
class ConsistentSnapshot:
    """Every table of a pipeline at its newest commit, by path, downstream tables first.
    ``declared`` are the paths of the tables that are declared now."""

    tables: Mapping[str, TablePosition]
    bronze: TablePosition
    declared: Collection[str]

    @property
    def n(self) -> int:
        """The batch id up to which every silver and gold table has processed bronze."""
        return min((self.bronze.n, *(position.n for position in self.dense.values())))

    @property
    def dense(self) -> dict[str, TablePosition]:
        """The declared silver and gold tables. They have a commit at every step."""
        return {
            path: position
            for path, position in self.tables.items()
            if kind_of(path).is_dense and path in self.declared
        }


def head_table(layout: Layout, pipeline: Pipeline) -> Table:
    """The bronze table that all others follow. It may not exist."""
    return Table(layout.storage, graph_of(pipeline).head.path, pipeline=pipeline.name)


def snapshot(layout: Layout, pipeline: Pipeline) -> ConsistentSnapshot:
    """Read the position of every table, declared or not. A driver may run at the same time.

    Raises NoTablesError, LogGapError if a log is damaged.
    """
    tables = {table.name: _standing(table) for table in tables_of(layout, pipeline.name)}
    bronze = tables.get(graph_of(pipeline).head.path)
    if bronze is None:
        raise NoTablesError(pipeline.name, layout.storage.root)
    return ConsistentSnapshot(tables, bronze, frozenset(pipeline.definitions))


def tables_of(layout: Layout, pipeline: str) -> Iterator[Table]:
    """Every table in a pipeline's folder, each before its upstream tables."""
    for kind in reversed(KINDS):
        for name in layout.storage.folders(kind.folder):
            table = Table(layout.storage, kind.path(name), pipeline=pipeline)
            if table.exists:
                yield table


def _standing(table: Table) -> TablePosition:
    state = table.refresh()
    table.require_intact()
    return TablePosition(table, table.version, state)
