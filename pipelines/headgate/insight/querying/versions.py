"""Which versions of a pipeline's tables belong together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headgate import exit_codes
from headgate.commands import pipeline_command
from headgate.declaration.graph import Node, graph_of
from headgate.declaration.kinds import BRONZE, RECORDS
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
    """The versions at the batch ids ``wanted``, by source. A source without one has the last batch
    that all its tables have processed.

    A gold table that is held has not processed the batch with which it breaks rules. Raises
    NoSuchBatchError, or LogGapError if a log is damaged.
    """
    graph, tables = graph_of(pipeline), [*_tables(layout, pipeline)]
    numbers, versions = dict[str, int](), dict[str, int]()
    for source in pipeline.sources:
        own = [(n, table) for n, table in tables if graph.source_of(n.path).name == source]
        # The other kinds skip batches that have no rows for them.
        last = min(t.state.n for node, t in own if node.kind.is_dense or node.kind == BRONZE)
        at = numbers[source] = (wanted or {}).get(source, last)
        batch = f"batch {at} of {source}" if len(pipeline.sources) > 1 else f"batch {at}"
        if not 0 <= at <= last:
            raise NoSuchBatchError(
                f"{pipeline.name}: not all tables have processed {batch}; the last one is {last}",
                remedy=pipeline_command("versions"),
            )
        for node, table in own:
            try:
                versions[node.path] = commit_at(table, at, table.version).version
            except LogGapError as error:
                if at == last:
                    raise
                why, again = _why_it_begins_later(table), pipeline_command("versions")
                raise NoSuchBatchError(
                    f"{pipeline.name}: the log of {node.path} does not reach back to {batch}; "
                    f"{why}",
                    remedy=f"choose a later batch; the last one is {last}: {again}",
                ) from error
    return BatchVersions(numbers, versions)


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
