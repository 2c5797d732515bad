"""The checkpoints of a pipeline: bronze's commits, batches that a crash would repeat, open state.

All is read from the tables, whether drivers run or not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice

import pyarrow.parquet as pq

from headgate.declaration.contracts.operation import operation_named
from headgate.declaration.contracts.operator import bounds_of
from headgate.declaration.graph import Graph, graph_of
from headgate.declaration.kinds import GOLD
from headgate.declaration.model import GoldTable, Pipeline
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.data_file import STATE
from headgate.lake.tables.history import lineage
from headgate.lake.tables.log import entry_path
from headgate.lake.tables.open_rows import open_rows
from headgate.lake.tables.snapshot import ConsistentSnapshot, TablePosition, snapshot
from headgate.lake.tables.state import time_of


@dataclass(frozen=True)
class Checkpoint:
    """A commit of bronze. ``rows`` and ``bytes`` count what it added. ``took`` is the time from the
    start of the batch to the commit."""

    n: int
    committed: datetime
    took: timedelta
    rows: int
    bytes: int


@dataclass(frozen=True)
class ToProcess:
    """The batches that a table would process if the driver crashed now."""

    table: str
    batches: int
    rows: int


@dataclass(frozen=True)
class OpenOperation:
    """The ``number``-th operation, of kind ``name``, after batch id ``n``. ``tables`` have not
    carried it out yet. ``what`` describes its effect."""

    number: int
    name: str
    n: int
    what: str
    tables: tuple[str, ...]


@dataclass(frozen=True)
class OpenWindow:
    """A window, or the results of another operator, that can still change. ``span`` has the begin
    and the end, if the results have them. ``rows`` is the number of rows in gold, ``bytes`` the
    size of their state in memory."""

    table: str
    span: tuple[datetime, ...]
    rows: int
    bytes: int


@dataclass(frozen=True)
class Checkpoints:
    """``n`` is the batch id of each source, ``history`` its checkpoints, newest first."""

    n: dict[str, int]
    generation: int
    history: dict[str, tuple[Checkpoint, ...]]
    replay: tuple[ToProcess, ...]
    operations: tuple[OpenOperation, ...]
    windows: tuple[OpenWindow, ...]


def checkpoints(layout: Layout, pipeline: Pipeline, most: int = 10) -> Checkpoints:
    """Raises HeadgateError if the pipeline has no tables, LogGapError if a log is damaged."""
    at = snapshot(layout, pipeline)
    return Checkpoints(
        n={name: bronze.n for name, bronze in at.bronze.items()},
        generation=at.decisions.generation,
        history={name: checkpoint_history(each, most) for name, each in at.bronze.items()},
        replay=tuple(_replay(at)),
        operations=tuple(_open_operations(at, graph_of(pipeline))),
        windows=tuple(w for gold in pipeline.gold.values() for w in _open_windows(at, gold)),
    )


def checkpoint_history(bronze: TablePosition, most: int) -> tuple[Checkpoint, ...]:
    """The last batches of bronze, newest first. Raises LogGapError if its log is damaged."""
    commits = lineage(bronze.table, bronze.version)
    found = []
    for commit in islice((c for c in commits if c.state.kind == "data"), most):
        stat = bronze.table.storage.stat(entry_path(commit.version))
        assert stat is not None
        began = time_of(commit.state.at)
        found.append(
            Checkpoint(
                n=commit.state.n,
                committed=stat.modified,
                took=stat.modified - began,
                rows=commit.rows,
                bytes=sum(f.size for f in commit.files),
            )
        )
    return tuple(found)


def _replay(at: ConsistentSnapshot) -> list[ToProcess]:
    """A table at batch id n continues with batch n + 1."""
    found, lowest = [], at.n
    for source, bronze in at.numbering.items():
        rows: dict[int, int] = {}
        for commit in lineage(bronze.table, bronze.version):
            if commit.state.n <= lowest[source]:
                break
            if commit.state.kind == "data":
                rows[commit.state.n] = commit.rows
        found += [
            ToProcess(path, bronze.n - table.n, sum(r for n, r in rows.items() if n > table.n))
            for path, table in at.dense.items()
            if at.graph.numbered_by(path).name == source and table.n < bronze.n
        ]
    return found


def _open_operations(at: ConsistentSnapshot, graph: Graph) -> Iterator[OpenOperation]:
    for source in at.numbering:
        for each in at.decisions.operations_of(source):
            kind = operation_named(each.name)
            waiting = tuple(
                path
                for path in kind.touches(graph, each.document)
                if path in at.tables
                and graph.numbered_by(path).name == source
                and at.tables[path].state.operation < each.number
            )
            if waiting:
                what = kind.describe(each.document)
                yield OpenOperation(each.number, each.name, each.n, what, waiting)


def _open_windows(at: ConsistentSnapshot, gold: GoldTable) -> list[OpenWindow]:
    path, columns = GOLD.path(gold.name), bounds_of(gold)
    table = at.tables[path].table
    found: dict[tuple[datetime, ...], list[int]] = defaultdict(lambda: [0, 0])
    for file in open_rows(table).files:
        with table.storage.open(file.path) as source:
            rows = pq.read_table(source, columns=[*columns, STATE])
        places: dict[tuple[datetime, ...], list[int]] = defaultdict(list)
        times = [rows.column(name).to_pylist() for name in columns]
        for place in range(len(rows)):
            places[tuple(time[place] for time in times)].append(place)
        for span, of_window in places.items():
            state = rows.column(STATE).take(of_window).combine_chunks()
            found[span][0] += len(state)
            found[span][1] += state.nbytes
    return [OpenWindow(path, span, *counted) for span, counted in sorted(found.items())]
