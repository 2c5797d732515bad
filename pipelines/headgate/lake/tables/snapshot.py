"""A consistent snapshot of the positions of a pipeline's tables, now and as of a batch id.

Each source has batch ids of its own. A silver or gold table has those of its source, or those of
the input log of its sources.

A running driver updates upstream tables first, and side tables before the table that counts their
rows. The snapshot reads them in the opposite order, so no table is ahead of its upstream. The
result is a state in which a crash could have left the tables, and from which stages continue
exactly. So no driver has to wait for a savepoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from deltalake import DeltaTable

from headgate.commands import pipeline_command
from headgate.declaration.graph import Graph, graph_of
from headgate.declaration.kinds import (
    BRONZE,
    FILES,
    GOLD,
    INPUTS,
    KINDS,
    LATE,
    NUMBERING,
    QUARANTINE,
    REJECTED,
    SILVER,
    kind_of,
)
from headgate.declaration.model import GoldTable, Pipeline
from headgate.errors import HeadgateError
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import DECISIONS, NO_DECISIONS, ControlTable, Decisions
from headgate.lake.tables.errors import LogGapError, NoTablesError
from headgate.lake.tables.history import commit_at, lineage
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.payloads.inputs import InputsPayload
from headgate.lake.tables.replay import RecordPosition, corrected_record, positions_table
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table

if TYPE_CHECKING:
    import pyarrow as pa
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
        return DeltaTable(self.table.log.uri(), version=self.version)

    def dataset(self) -> Dataset:
        """The rows of the version, for Arrow and DuckDB. This reads no row yet."""
        return self.handle.to_pyarrow_dataset()


@dataclass(frozen=True)
class ConsistentSnapshot:
    """Every table of a pipeline at its newest commit, by path, downstream tables first. ``graph``
    has the tables that are declared now.

    ``decision`` is the number of the last decision before bronze was read: the position of an
    earlier one is not beyond bronze, and silver and gold have carried out no later one.
    ``decisions`` are those after all tables were read: they say which tables await a reset."""

    tables: Mapping[str, TablePosition]
    graph: Graph
    decision: int = 0
    decisions: Decisions = NO_DECISIONS

    @property
    def bronze(self) -> dict[str, TablePosition]:
        """The bronze tables of the declared sources, by source."""
        found = {node.name: self.tables.get(node.path) for node in self.graph.of(BRONZE)}
        return {name: position for name, position in found.items() if position is not None}

    @property
    def numbering(self) -> dict[str, TablePosition]:
        """The bronze tables of the declared sources, by source, and the input logs."""
        found = {node.name: self.tables.get(node.path) for node in self.graph.of(*NUMBERING)}
        return {name: position for name, position in found.items() if position is not None}

    @property
    def n(self) -> dict[str, int]:
        """The batch id, by source, up to which every silver and gold table of the source has
        processed its bronze table; and those of the input logs."""
        found = {name: position.n for name, position in self.numbering.items()}
        for path, position in self.dense.items():
            for name, n in processed(self.graph, path, position.state).items():
                found[name] = min(found.get(name, 0), n)
        return found

    @property
    def dense(self) -> dict[str, TablePosition]:
        """The declared silver and gold tables. They have a commit at every step."""
        return {
            path: position
            for path, position in self.tables.items()
            if kind_of(path).is_dense and path in self.graph
        }


def processed(graph: Graph, path: str, state: State) -> dict[str, int]:
    """The batch ids that a silver or gold table has processed in a state: that of its source, or
    those of its input log and of each of its sources. A rollup reads no source."""
    return processed_at(graph, path, state.n, inputs_of(state))


def processed_at(graph: Graph, path: str, n: int, inputs: Mapping[str, int]) -> dict[str, int]:
    """As ``processed``, at batch id ``n`` and the batch ids ``inputs`` of the sources."""
    own = graph.numbered_by(path)
    reads_log = any(kind_of(above) == SILVER for above in graph[path].upstream)
    if own.kind != INPUTS or not reads_log:
        return {own.name: n}
    return {own.name: n, **{s: inputs.get(s, 0) for s in graph.sources_of(path)}}


def inputs_of(state: State) -> Mapping[str, int]:
    """The batch ids of the sources up to which a gold table has read, or an input log goes; empty
    for another table."""
    payload = state.payload
    return payload.inputs if isinstance(payload, GoldPayload | InputsPayload) else {}


def silver_read(declared: GoldTable, gold: State) -> dict[str, int]:
    """Up to which batch of each silver table a gold table that reads silver has read it in a state,
    by the name of the silver table."""
    sources = dict(zip(declared.inputs, declared.sources, strict=True))
    return silver_read_at(sources, gold.n, inputs_of(gold))


def silver_read_at(sources: Mapping[str, str], n: int, inputs: Mapping[str, int]) -> dict[str, int]:
    """As ``silver_read``, at batch id ``n`` and the batch ids ``inputs`` of the sources, if there
    are several. ``sources`` has the source of each silver table."""
    several = len({*sources.values()}) > 1
    return {name: inputs.get(source, 0) if several else n for name, source in sources.items()}


def snapshot(layout: Layout, pipeline: Pipeline) -> ConsistentSnapshot:
    """Read the position of every table, declared or not. A driver may run at the same time.

    Raises NoTablesError, LogGapError if a log is damaged.
    """
    control = ControlTable.of(layout.storage, pipeline.name)
    graph = graph_of(pipeline)
    tables: dict[str, TablePosition] = {}
    for node in reversed(graph.of(GOLD)):  # before the tables that rollups read
        if (table := Table(layout.storage, node.path, pipeline=pipeline.name)).exists:
            tables[node.path] = _standing(table)
    for table in tables_of(layout, pipeline.name):
        if table.name in tables:
            continue
        if (
            kind_of(table.name) in (BRONZE, INPUTS, FILES)
            and DECISIONS not in tables
            and control.exists
        ):
            tables[DECISIONS] = _standing(control.table)
            known = control.refresh()
        if table.name != DECISIONS:
            tables[table.name] = _standing(table)
    if DECISIONS not in tables or all(node.path not in tables for node in graph.of(BRONZE)):
        raise NoTablesError(pipeline.name, layout.storage.root)
    return ConsistentSnapshot(tables, graph, known.last, control.refresh())


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


@dataclass(frozen=True)
class Positions:
    """Every table of a pipeline at its newest commit, by name; ``bronze`` and ``quarantine`` by
    source, ``numbering`` by source and by input log. ``rejected`` has no entry for a silver table
    without a suite, ``late`` has none for a rollup."""

    numbering: Mapping[str, TablePosition]
    bronze: Mapping[str, TablePosition]
    quarantine: Mapping[str, TablePosition]
    rejected: Mapping[str, TablePosition]
    silver: Mapping[str, TablePosition]
    gold: Mapping[str, TablePosition]
    late: Mapping[str, TablePosition]


def newest(layout: Layout, pipeline: Pipeline) -> Positions:
    """Read the position of every table. Raises HeadgateError if the pipeline has never run."""
    found = snapshot(layout, pipeline)
    for path in pipeline.definitions:
        if path not in found.tables:
            raise HeadgateError(
                f"{pipeline.name} has no table {path} yet under {layout.storage.root}",
                remedy=pipeline_command("run", "--once"),
            )
    return Positions(
        found.numbering,
        {name: found.tables[BRONZE.path(name)] for name in pipeline.sources},
        {name: found.tables[QUARANTINE.path(name)] for name in pipeline.sources},
        {n: found.tables[REJECTED.path(n)] for n, table in pipeline.silver.items() if table.suite},
        {name: found.tables[SILVER.path(name)] for name in pipeline.silver},
        {name: found.tables[GOLD.path(name)] for name in pipeline.gold},
        {name: found.tables[LATE.path(name)] for name in pipeline.with_late_rows},
    )


def corrections(bronze: TablePosition) -> dict[RecordPosition, RecordPosition]:
    """The copies that replays have written to bronze, each with the record that it corrects."""
    import pyarrow.dataset as ds

    if not bronze.total("replayed"):
        return {}
    columns = ["partition", "offset", "headers"]
    wanted = ds.field("partition") < 0
    rows = bronze.dataset().to_table(columns=columns, filter=wanted).to_pylist()
    found = {
        RecordPosition(row["partition"], row["offset"]): corrected_record(row["headers"])
        for row in rows
    }
    return {copy: of for copy, of in found.items() if of is not None}


def corrections_table(found: Mapping[RecordPosition, RecordPosition]) -> pa.Table:
    """Copies and what they correct: ``partition``, ``offset``, ``of_partition``, ``of_offset``."""
    pairs, of = positions_table(found), positions_table(found.values())
    for name in of.column_names:
        pairs = pairs.append_column(f"of_{name}", of.column(name))
    return pairs


def as_of(position: TablePosition, n: int) -> TablePosition:
    """The position at which the table had processed bronze up to batch id ``n`` and no further.

    Side tables skip batches without rows, so their position may be below ``n``. Raises
    LogGapError if the table's log no longer has this position.
    """
    if position.n <= n:
        return position
    commit = commit_at(position.table, n, position.state.data_commit)
    return TablePosition(position.table, commit.version, commit.state)


def followed_by(above: TablePosition, rollup: TablePosition) -> TablePosition:
    """The position up to which a rollup has followed the table that it reads. Raises LogGapError if
    the log of that table no longer has this position."""
    for commit in lineage(above.table, above.version):
        if commit.state.n <= rollup.n and commit.state.operation <= rollup.state.operation:
            return TablePosition(above.table, commit.version, commit.state)
    raise LogGapError(
        f"{above.table.name}: its log does not reach back to batch {rollup.n:,}, which "
        f"{rollup.table.name} has followed",
        remedy=f"type the command again when the table has caught up: {pipeline_command('status')}",
    )


def late_as_of(late: TablePosition, gold: TablePosition) -> TablePosition:
    """The late table as of its gold table: without rows of later batches, and without the marks of
    a replay that gold has not carried out, for example because a gate holds gold."""
    found = as_of(late, gold.state.n)
    if found.state.operation <= gold.state.operation:
        return found
    with suppress(LogGapError):
        for commit in lineage(late.table, found.version):
            if commit.state.operation <= gold.state.operation:
                return TablePosition(late.table, commit.version, commit.state)
    return found
