"""The requests with one note.

The Airflow tasks of an interval write the note of their run into each request, and its decision
keeps it. So a later attempt finds the requests of an earlier one, however that one ended.
"""

from __future__ import annotations

from collections.abc import Iterator

from headgate.declaration.contracts.operation import Document, operation_named
from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import GOLD
from headgate.declaration.model import Pipeline
from headgate.lake.control.requests import waiting_requests
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import ControlTable, Operation
from headgate.lake.tables.table import Table


def has_open_request(layout: Layout, pipeline: Pipeline, note: str) -> bool:
    """Whether a request waits, or a gold table has not carried it out. The requests are read before
    the decisions, because a request is removed only after its decision."""
    if any(_has(request.document, note) for request in waiting_requests(layout)):
        return True
    found = _operations(layout, pipeline, note)
    return any(gold.refresh().operation < operation.number for operation, gold in found)


def _operations(layout: Layout, pipeline: Pipeline, note: str) -> Iterator[tuple[Operation, Table]]:
    """The operations of the requests, each with a gold table that carries it out."""
    graph = graph_of(pipeline)
    decisions = ControlTable.of(layout.storage, pipeline.name).refresh()
    for path in map(GOLD.path, pipeline.gold):
        for operation in decisions.operations_of(graph.numbered_by(path).name):
            touched = operation_named(operation.name).touches(graph, operation.document)
            if _has(operation.document, note) and path in touched:
                yield operation, Table(layout.storage, path, pipeline=pipeline.name)


def _has(document: Document, note: str) -> bool:
    """Whether a request has this note. The note follows the name of the requester in ``by``."""
    return str(document.get("by", "")).endswith(f": {note}")
