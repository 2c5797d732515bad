"""What an operation is, and which there are: rare changes of tables outside the flow of batches.

Somebody asks for an operation between two batches, by a commit of bronze. Each table that it
touches carries it out at exactly that place, in one commit; a table that is rebuilt does so again.
A member is a module of ``headgate.operations`` (``headgate.registry``); how it changes a table is
in its full contract (``headgate.operations.contract``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from typing import Any

from headgate import exit_codes
from headgate.errors import HeadgateError
from headgate.graph.graph import Graph
from headgate.registry import Registry

Document = Mapping[str, Any]
"""What somebody asked for, in JSON values. Every commit of bronze repeats it: it has to be small,
and names data instead of holding it."""


class UnknownOperationError(HeadgateError, code=exit_codes.USAGE):
    """The tables went through an operation that this installation does not have."""


class OperationKind(ABC):
    """An operation that a pipeline's tables can go through."""

    @abstractmethod
    def touches(self, graph: Graph, document: Document) -> Collection[str]:
        """The paths of the tables that it changes: any that are built from bronze."""

    @abstractmethod
    def describe(self, document: Document) -> str:
        """What it does to a table, for people: the end of "gold/sales must …"."""


KINDS: Registry[OperationKind] = Registry("headgate.operations", OperationKind)


def known(name: str) -> OperationKind:
    """Raises UnknownOperationError."""
    if (kind := KINDS.get(name)) is None:
        raise UnknownOperationError(
            f"the operation {name} was asked for, and nothing here is called so",
            remedy=f"install the package that has it; there are: {', '.join(KINDS.names())}",
        )
    return kind
