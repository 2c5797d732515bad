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
    """The versions of tables, by their paths, that have all of batch ``n`` and nothing later."""

    n: int
    versions: Mapping[str, int]


def versions_at(layout: Layout, pipeline: Pipeline, n: int | None = None) -> BatchVersions:
    """The versions at a batch id; without one, at the last batch that all tables have processed.

    A gold table that is held has not processed the batch with which it breaks rules. Raises
    NoSuchBatchError, or LogGapError if a log is damaged.
    """
    tables = [*_tables(layout, pipeline)]
    # The other kinds skip batches that have no rows for them.
    last = min(t.state.n for node, t in tables if node.kind.is_dense or node.kind == BRONZE)
    if n is not None and not 0 <= n <= last:
        raise NoSuchBatchError(
            f"{pipeline.name}: not all tables have processed batch {n}; the last one is {last}",
            remedy=pipeline_command("versions"),
        )
    at = last if n is None else n
    versions = {}
    for node, table in tables:
        try:
            versions[node.path] = commit_at(table, at, table.version).version
        except LogGapError as error:
            if at == last:
                raise
            why = _why_it_begins_later(table)
            remedy = f"choose a later batch; the last one is {last}: {pipeline_command('versions')}"
            raise NoSuchBatchError(
                f"{pipeline.name}: the log of {node.path} does not reach back to batch {at}; {why}",
                remedy,
            ) from error
    return BatchVersions(at, versions)


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
