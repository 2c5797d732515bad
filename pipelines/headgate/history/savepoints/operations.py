"""The operations that a savepoint has, and the files that they read when its tables are rebuilt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headgate.declaration.contracts.operation import OPERATIONS
from headgate.declaration.kinds import BRONZE, kind_of
from headgate.history.savepoints.savepoint import Savepoint
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.history import lineage
from headgate.lake.tables.operation import Operation
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.table import Table


def operations_of(layout: Layout, savepoint: Savepoint) -> Sequence[Operation]:
    """Raises LogGapError if bronze's log no longer has the savepoint's version."""
    path = next(path for path in savepoint.tables if kind_of(path) == BRONZE)
    bronze = Table(layout.storage, path, pipeline=savepoint.pipeline)
    return BronzePayload.of(next(lineage(bronze, savepoint.bronze.version)).state).operations


def files_of(layout: Layout, savepoint: Savepoint) -> Iterator[str]:
    """The files beside the tables, in the pipeline's folder. Raises as :func:`operations_of`."""
    for each in operations_of(layout, savepoint):
        if (kind := OPERATIONS.get(each.name)) is not None:
            yield from kind.files(each.document)
