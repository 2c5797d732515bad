"""The contract of operations on tables, and their registry: rare changes between batches.

A decision (``lake.tables.decisions``) gives an operation its place among the batches. Each table
that it touches carries it out at exactly that place, in one commit. A rebuild carries it out again.
A member is a module of ``headgate.flow.operations`` (``headgate.registry``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from headgate import exit_codes
from headgate.declaration.graph import Graph
from headgate.declaration.kinds import name_of
from headgate.errors import HeadgateError
from headgate.registry import Registry

if TYPE_CHECKING:
    from headgate.flow.operations.stage_table import Change, StageTable
    from headgate.lake.tables.state import State

Document = Mapping[str, Any]
"""The parameters of an operation, in JSON values. Every process that reads decisions keeps them in
memory, so they must be small, and refer to data instead of containing it."""

REJECTED_FOR = "rejected"
"""The key of the entry that says for which tables, by name, a person has rejected the operation,
with who, why and when. These tables carry it out without a change."""


def is_rejected(document: Document, path: str) -> bool:
    """Whether an operation was rejected for a table."""
    return name_of(path) in document.get(REJECTED_FOR, ())


class UnknownOperationError(HeadgateError, code=exit_codes.USAGE):
    """The tables have an operation that this installation does not know."""


class TableOperation(ABC):
    """An operation that a pipeline's tables can go through. ``closes``: it makes open results of
    gold final. A rollup that it touches follows what the operation has done to the table that it
    reads (``StageTable.follow``), instead of ``change``."""

    closes: ClassVar[bool] = False

    @abstractmethod
    def touches(self, graph: Graph, document: Document) -> Collection[str]:
        """The paths of the tables that it changes. They must be built from bronze."""

    @abstractmethod
    def describe(self, document: Document) -> str:
        """A message about its effect on a table: the end of "gold/sales must …"."""

    def named(self, document: Document) -> str:
        """What it is, for a person."""
        return "the operation"

    def files(self, document: Document) -> Collection[str]:
        """The files in the pipeline's folder, beside its tables, that it reads."""
        return ()

    def is_meant_at(self, document: Document, generation: int) -> bool:
        """Whether a request still applies to the tables, now that the last reset has this
        generation. A request that does not apply is dropped when it is taken in."""
        return True

    @property
    def is_taken_back(self) -> bool:
        """Whether the restore of a savepoint that was taken before the operation was decided leaves
        it out of force. By default, tables that are reset carry it out again."""
        return False

    def extended(self, document: Document, made_as: Mapping[str, tuple[str, str]]) -> Document:
        """The document after fields were added inside of columns of tables. ``made_as`` has, by the
        path of a table, its definition before and after that."""
        return document

    @abstractmethod
    def change(self, place: StageTable, state: State, document: Document) -> Change:
        """The change of a table that is at the operation's batch id.

        ``state`` is the state of the next commit: the table's position, the operation's number, the
        time. The change must depend only on the document and the pipeline's tables as of the
        operation's batch, because it is computed again after a crash and in a rebuild. Files
        are staged and not committed. The state of the change says how many rows the table has then:
        its totals, and ``GoldPayload.open``. A commit with other files is refused
        (``tables.row_counts``).
        """

    def given_up(self, place: StageTable, state: State, document: Document) -> Change:
        """The change of a table for which the operation was rejected. By default there is none. A
        table that carries an operation out before the one that was held takes that back."""
        from headgate.flow.operations.stage_table import Change

        return Change(state)


OPERATIONS: Registry[TableOperation] = Registry("headgate.flow.operations", TableOperation)


def operation_named(name: str) -> TableOperation:
    """The operation of a name. Raises UnknownOperationError."""
    if (found := OPERATIONS.get(name)) is None:
        names = ", ".join(OPERATIONS.names())
        raise UnknownOperationError(
            f"the tables have an operation {name}, which this installation does not know",
            remedy=f"install the package that has it; known operations: {names}",
        )
    return found
