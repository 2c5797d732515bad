"""The requests with one note.

The Airflow tasks of an interval write the note of their run into each request, and bronze's commits
keep it. So a later attempt finds the requests of an earlier one, however that one ended.
"""

from __future__ import annotations

from collections.abc import Iterator

from headgate.declaration.contracts.operation import Document, operation_named
from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import GOLD
from headgate.declaration.model import Pipeline
from headgate.flow.operations.requests import waiting_operations
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.payloads.bronze import BronzePayload, Operation
from headgate.lake.tables.snapshot import head_table
from headgate.lake.tables.table import Table


def has_open_request(layout: Layout, pipeline: Pipeline, note: str) -> bool:
    """Whether a request waits, or a gold table has not carried it out. The requests are read before
    bronze, because a request is removed only after bronze's commit."""
    if any(_has(request.document, note) for request in waiting_operations(layout)):
        return True
    found = _operations(layout, pipeline, note)
    return any(gold.refresh().operation < operation.number for operation, gold in found)


def _operations(layout: Layout, pipeline: Pipeline, note: str) -> Iterator[tuple[Operation, Table]]:
    """The operations of the requests in bronze's commits, each with a gold table that it
    touches."""
    graph = graph_of(pipeline)
    bronze = head_table(layout, pipeline)
    for operation in BronzePayload.of(bronze.refresh()).operations:
        if _has(operation.document, note):
            touched = operation_named(operation.name).touches(graph, operation.document)
            for path in map(GOLD.path, pipeline.gold):
                if path in touched:
                    yield operation, Table(layout.storage, path, pipeline=pipeline.name)


def _has(document: Document, note: str) -> bool:
    """Whether a request has this note. The note follows the name of the requester in ``by``."""
    return str(document.get("by", "")).endswith(f": {note}")
