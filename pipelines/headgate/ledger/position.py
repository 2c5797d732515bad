"""Where tables stand, and where they stood when they reached a batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from deltalake.exceptions import DeltaError

from headgate.spec.errors import HeadgateError
from headgate.spec.model import Pipeline
from headgate.storage.layout import Layout
from headgate.tables.errors import LogGapError
from headgate.tables.history import read_commit
from headgate.tables.state import State
from headgate.tables.table import Table


@dataclass(frozen=True)
class Position:
    """A table as of one of its commits: the log version of it and the state it carries."""

    table: Table
    version: int
    state: State

    def total(self, key: str) -> int:
        return int(self.state.total.get(key, 0))


@dataclass(frozen=True)
class Positions:
    """Every table of a pipeline at its newest commit, by name."""

    bronze: Position
    quarantine: Position
    silver: Mapping[str, Position]
    gold: Mapping[str, Position]
    late: Mapping[str, Position]


def newest(layout: Layout, pipeline: Pipeline) -> Positions:
    """Read where every table stands. Raises HeadgateError if the pipeline has never run.

    A running driver moves tables from bronze downwards, and side tables before the table whose
    counts they prove: so they are read the other way round, and nothing is missed.
    """

    def at_end(path: str) -> Position:
        table = Table(layout.storage, path, pipeline=pipeline.name)
        try:
            state = table.refresh()
        except FileNotFoundError as error:
            raise HeadgateError(
                f"{pipeline.name} has no tables under {layout.storage.root}",
                remedy=f"headgate run {pipeline.file} --once, or name its folder with --root",
            ) from error
        except DeltaError as error:
            raise LogGapError(
                f"{path}: the table's log cannot be read: {str(error).partition(':')[2][:200]}",
                remedy=f"restore the table's folder from a backup: {layout.storage.uri(path)}",
            ) from error
        return Position(table, table.handle.version(), state)

    gold = {name: at_end(Layout.gold(name)) for name in pipeline.gold}
    late = {name: at_end(Layout.late(name)) for name in pipeline.gold}
    silver = {name: at_end(Layout.silver(name)) for name in pipeline.silver}
    quarantine = at_end(Layout.quarantine(pipeline.source.name))
    bronze = at_end(Layout.bronze(pipeline.source.name))
    return Positions(bronze, quarantine, silver, gold, late)


def as_of(position: Position, n: int) -> Position:
    """The table when it had absorbed bronze up to ``n`` and no further.

    Side tables skip batches without rows, so their position may be below ``n``. Raises
    LogGapError if the table's log no longer reaches back so far.
    """
    if position.state.n <= n:
        return position
    for version in range(position.state.data_commit, -1, -1):
        commit = read_commit(position.table.storage, version)
        if commit is not None and commit.state.n <= n:
            return Position(position.table, version, commit.state)
    raise LogGapError(
        f"{position.table.name}: its log does not reach back to batch {n}",
        remedy="restore the table's folder from a backup",
    )
