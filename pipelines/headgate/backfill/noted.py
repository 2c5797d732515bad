"""What the requests of one note have done to gold.

The tasks of an interval give each request the note of their run, and bronze's commits keep it. So a
later attempt finds what an earlier one has changed, whatever became of that one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from headgate.backfill.publication import may_have_changed
from headgate.declaration.kinds import GOLD
from headgate.declaration.model import Pipeline
from headgate.graph.graph import graph_of
from headgate.graph.operations import Document, known
from headgate.operations.requests import waiting
from headgate.storage.layout import Layout
from headgate.tables.operation import Operation
from headgate.tables.payloads.bronze import BronzePayload
from headgate.tables.snapshot import head_table
from headgate.tables.table import Table


def is_open(layout: Layout, pipeline: Pipeline, note: str) -> bool:
    """Whether a request waits, or a gold table has not carried it out. The requests are looked at
    first: one is removed after bronze's commit."""
    if any(_has(request.document, note) for request in waiting(layout)):
        return True
    found = _operations(layout, pipeline, note)
    return any(gold.refresh().operation < operation.number for operation, gold in found)


def changed(layout: Layout, pipeline: Pipeline, note: str) -> Collection[str]:
    """The gold tables that the requests may have changed, by their names: all of them, but those
    whose logs say that they have not."""
    return {
        gold.name.removeprefix(GOLD.path(""))
        for operation, gold in _operations(layout, pipeline, note)
        if gold.refresh().operation >= operation.number and may_have_changed(gold, operation.number)
    }


def _operations(layout: Layout, pipeline: Pipeline, note: str) -> Iterator[tuple[Operation, Table]]:
    """The operations that bronze's commits have of the requests, each with a gold table."""
    graph = graph_of(pipeline)
    bronze = head_table(layout, pipeline)
    for operation in BronzePayload.of(bronze.refresh()).operations:
        if _has(operation.document, note):
            touched = known(operation.name).touches(graph, operation.document)
            for path in map(GOLD.path, pipeline.gold):
                if path in touched:
                    yield operation, Table(layout.storage, path, pipeline=pipeline.name)


def _has(document: Document, note: str) -> bool:
    """Whether a person or a program has asked with this note: it follows who that was."""
    return str(document.get("by", "")).endswith(f": {note}")
