"""The full contract of an operation, with the part that reads and writes rows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headgate.declaration.graph.operations import Document, OperationKind
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table
from headgate.registry import Registry

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class Place:
    """A table of a stage. ``rows`` reads some of its files, with the states of open rows.
    ``time_column`` is the column for which files have bounds. ``end`` is the time when a result of
    gold is complete, in microseconds since 1970 UTC. ``replay`` computes how a replay of late pairs
    changes the table, ``give_up`` how a table takes that back before its gold table has it; None
    if the stage does not replay."""

    table: Table
    rows: Callable[[Sequence[DataFile]], DataFrame]
    time_column: str
    end: Column | None = None
    replay: Callable[[State, Document], Change] | None = None
    give_up: Callable[[State, Document], Change] | None = None


@dataclass(frozen=True)
class Change:
    """One commit of an operation: the state after it, and the added and removed files. ``moved``
    are added files whose rows were in removed files before."""

    state: State
    add: Sequence[DataFile] = ()
    remove: Sequence[DataFile] = ()
    moved: Sequence[DataFile] = ()


class TableOperation(OperationKind):
    """An operation with its runtime part. Spark is imported inside methods."""

    @abstractmethod
    def change(self, place: Place, state: State, document: Document) -> Change:
        """The change of a table that is at the operation's batch id.

        ``state`` is the state of the next commit: the table's position, the operation's number, the
        time. The change must depend only on the document and the pipeline's tables as of the
        operation's batch, because it is computed again after a crash and in a rebuild. Files
        are staged and not committed.
        """

    def given_up(self, place: Place, state: State, document: Document) -> Change:
        """The change of a table for which the operation was rejected. By default there is none. A
        table that carries an operation out before the one that was held takes that back."""
        return Change(state)


OPERATIONS: Registry[TableOperation] = Registry("headgate.flow.operations", TableOperation)
