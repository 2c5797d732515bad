"""How an operation changes a table: the part of the contract that reads and writes rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.graph.operations import Document, OperationKind
from headgate.registry import Registry
from headgate.tables.data_file import DataFile
from headgate.tables.state import State
from headgate.tables.table import Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class Place:
    """A table of a stage. ``rows`` reads some of its files, with the states of open rows.
    ``time_column`` is the one that files have bounds of, ``end`` when a result of gold is complete,
    in microseconds since 1970 UTC."""

    table: Table
    rows: Callable[[Sequence[DataFile]], DataFrame]
    time_column: str
    end: Column | None = None


@dataclass(frozen=True)
class Change:
    """One commit of an operation: the state after it, and the files that come and go."""

    state: State
    add: Sequence[DataFile] = ()
    remove: Sequence[DataFile] = ()


class TableOperation(OperationKind):
    """An operation with its runtime part. Spark is imported inside methods."""

    @abstractmethod
    def change(self, place: Place, state: State, document: Document) -> Change:
        """What the operation does to a table that stands at its batch.

        ``state`` is that of the commit to come: the table's position, the operation's number, the
        time. The change depends on the table's rows and the document alone: it is computed again
        after a crash, and where the table is rebuilt. Files are staged and not committed.
        """


OPERATIONS: Registry[TableOperation] = Registry("headgate.operations", TableOperation)
