"""The contract and registry of operations: rare changes of tables between batches.

A commit of bronze between two batches requests an operation. Each table that it touches carries it
out at exactly that place, in one commit. A rebuild carries it out again. A member is a module of
``headgate.flow.operations`` (``headgate.registry``). Its full contract
(``headgate.flow.operations.contract``) defines how it changes a table.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Any

from headgate import exit_codes
from headgate.declaration.graph.graph import Graph
from headgate.declaration.kinds import name_of
from headgate.errors import HeadgateError
from headgate.registry import Registry

Document = Mapping[str, Any]
"""The parameters of an operation, in JSON values. Every commit of bronze repeats them, so they must
be small, and refer to data instead of containing it."""

TAKEN_BACK = "taken_back"
"""The key of the entry that a restore adds to the document of an operation that it takes back. The
value is the restored savepoint."""


REJECTED = "rejected"
"""The key of the entry that says for which tables, by name, a person has rejected the operation,
with who, why and when. These tables carry it out without a change."""


def is_rejected(document: Document, path: str) -> bool:
    """Whether an operation was rejected for a table."""
    return name_of(path) in document.get(REJECTED, ())


class UnknownOperationError(HeadgateError, code=exit_codes.USAGE):
    """The tables have an operation that this installation does not know."""


class OperationKind(ABC):
    """An operation that a pipeline's tables can go through."""

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
        """Whether a request still applies to the tables, now that bronze has this generation. A
        request that does not apply is dropped when it is taken in."""
        return True

    def taken_back(self, document: Document, savepoint: str) -> Document:
        """The document after the restore of a savepoint that was taken before the operation was
        requested. By default, tables that are reset carry it out again."""
        return document

    def extended(self, document: Document, made_as: Mapping[str, tuple[str, str]]) -> Document:
        """The document after fields were added inside of columns of tables. ``made_as`` has, by the
        path of a table, its definition before and after that."""
        return document


KINDS: Registry[OperationKind] = Registry("headgate.flow.operations", OperationKind)


def known(name: str) -> OperationKind:
    """Raises UnknownOperationError."""
    if (kind := KINDS.get(name)) is None:
        raise UnknownOperationError(
            f"the tables have an operation {name}, which this installation does not know",
            remedy=f"install the package that has it; known operations: {', '.join(KINDS.names())}",
        )
    return kind
