"""Which versions of a pipeline's tables belong together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headgate import exit_codes
from headgate.commands import pipeline_command
from headgate.declaration.graph import Node, graph_of
from headgate.declaration.kinds import BRONZE, NUMBERING, RECORDS
from headgate.declaration.model import Pipeline
from headgate.errors import HeadgateError
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.errors import LogGapError, NoTablesError
from headgate.lake.tables.history import commit_at, lineage
from headgate.lake.tables.table import Table


class NoSuchBatchError(HeadgateError, code=exit_codes.USAGE):
    """The tables have not processed a batch, or their logs no longer say where it ended."""


@dataclass(frozen=True)
class BatchVersions:
    """The versions of tables, by their paths, that have all of batch ``n`` of their source, and
    nothing later."""

    n: Mapping[str, int]
    versions: Mapping[str, int]


def versions_at(
    layout: Layout, pipeline: Pipeline, wanted: Mapping[str, int] | None = None
) -> BatchVersions:
    """The versions at the batch ids ``wanted``, by source; tables that read several sources have
    those of their input log, by its name. A source without one has the last batch
    that all its tables have processed, and with which a step of each has ended.

    A gold table that is held has not processed the batch with which it breaks rules. Raises
    NoSuchBatchError, also if a table has processed a batch only together with later ones, or
    LogGapError if a log is damaged.
    """
    graph, tables = graph_of(pipeline), [*_tables(layout, pipeline)]
    numbers, versions = dict[str, int](), dict[str, int]()
    for source in (node.name for node in graph.of(*NUMBERING)):
        own = [(n, table) for n, table in tables if graph.numbered_by(n.path).name == source]
        at = numbers[source] = _batch(pipeline, source, own, (wanted or {}).get(source))
        versions |= {node.path: commit_at(table, at, table.version).version for node, table in own}
    return BatchVersions(numbers, versions)


def _batch(
    pipeline: Pipeline, source: str, own: Sequence[tuple[Node, Table]], wanted: int | None
) -> int:
    """The batch id of a source for its ``own`` tables. Raises as ``versions_at``."""
    # The other kinds skip batches that have no rows for them.
    dense = [table for node, table in own if node.kind.is_dense or node.kind == BRONZE]
    last = min(table.state.n for table in dense)
    if wanted is None:
        return _last_common(pipeline, dense, last)
    batch = f"batch {wanted} of {source}" if len(pipeline.sources) > 1 else f"batch {wanted}"
    if not 0 <= wanted <= last:
        raise NoSuchBatchError(
            f"{pipeline.name}: not all tables have processed {batch}; the last one is {last}",
            remedy=pipeline_command("versions"),
        )
    for node, table in own:
        try:
            commit_at(table, wanted, table.version)
        except LogGapError as error:
            if wanted == last:
                raise
            why, again = _why_it_begins_later(table), pipeline_command("versions")
            raise NoSuchBatchError(
                f"{pipeline.name}: the log of {node.path} does not reach back to {batch}; {why}",
                remedy=f"choose a later batch; the last one is {last}: {again}",
            ) from error
    if (common := _last_common(pipeline, dense, wanted)) != wanted:
        raise NoSuchBatchError(
            f"{pipeline.name}: a table has processed {batch} only together with later ones",
            remedy=f"choose batch {common}, or a later one",
        )
    return wanted


def _last_common(pipeline: Pipeline, tables: Sequence[Table], at: int) -> int:
    """The last batch id up to ``at`` with which a step of each table has ended. Raises
    NoSuchBatchError if their logs do not have such a batch any more, LogGapError."""
    walks = [lineage(table, table.version) for table in tables]
    ends = [next(walk).state.n for walk in walks]
    while True:
        for place, walk in enumerate(walks):
            while ends[place] > at:
                if (commit := next(walk, None)) is None:
                    raise NoSuchBatchError(
                        f"{pipeline.name}: the logs of its tables have no batch with which a step "
                        "of each has ended",
                        remedy=f"bring all to one batch: {pipeline_command('restart')}",
                    )
                ends[place] = commit.state.n
        if (lowest := min(ends)) == at:
            return at
        at = lowest


def _why_it_begins_later(table: Table) -> str:
    """Why a log no longer has its first commits. Raises LogGapError if a later one is missing."""
    *_, first = lineage(table, table.version)
    if first.state.kind == "reset" and first.state.origin is None:
        return "a restore or a rebuild has replaced its history"
    return "a vacuum has trimmed it"


def _tables(layout: Layout, pipeline: Pipeline) -> Iterator[tuple[Node, Table]]:
    """Downstream tables first: a running driver commits in the opposite order, so upstream tables
    have all that a table has processed. Raises NoTablesError."""
    for node in reversed([*graph_of(pipeline)]):
        if node.kind in RECORDS:
            table = Table(layout.storage, node.path, pipeline=pipeline.name)
            if not table.exists:
                raise NoTablesError(pipeline.name, layout.storage.root)
            table.refresh()
            yield node, table
