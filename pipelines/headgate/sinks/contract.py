"""The full contract of a sink: the declaration's contract, and the runtime methods."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from headgate.declaration.model import Publication
from headgate.declaration.sinks import SinkKind
from headgate.registry import Registry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Sink = TypeVar("Sink")


@dataclass(frozen=True)
class Outgoing:
    """The rows of the commits of a table's log in ``(after, upto]``.

    ``rows`` have the columns of the table, and for gold also ``_batch``: the batch id of a change,
    null for a final row. ``messages`` are the same rows as ``key``, ``value`` and ``headers``
    (``publish.messages``). The header ``headgate-id`` is a function of the row, so it is the same
    each time the row is sent.
    """

    rows: DataFrame
    messages: DataFrame
    after: int
    upto: int


class Writer(ABC):
    """Sends the rows of one publication. Errors of the sink are raised unchanged.

    A publication commits its position after each ``send``. If a driver ends in between, the next
    driver sends the rows again, unless the sink prevents it:

    - An *at-least-once* sink implements ``send`` only. Rows that are sent twice have the same ids.
    - A *transactional* sink stores ``upto`` in one transaction with the rows, and returns it from
      ``position``. In that transaction it should check that ``after`` is still its position:
      another driver may have been faster.
    """

    @abstractmethod
    def send(self, outgoing: Outgoing) -> None:
        """Send the rows. Return when the sink has stored all of them durably."""

    @abstractmethod
    def failure(self, error: Exception) -> str | None:
        """A message about an error of the sink, without secrets; None if the error has another
        cause. After an error of the sink, the rows are sent again later."""

    def position(self, held: int) -> int:
        """The version of the table's log up to which the sink has all rows. ``held`` is the version
        that the publication has committed; it is never greater than the result."""
        return held


class RunnableSink(SinkKind[Sink]):
    """Members import Spark only inside methods, because declarations are read without it."""

    @abstractmethod
    def writer(self, sink: Sink, name: str) -> Writer:
        """The writer of the publication ``name`` during one run of a driver. It connects when it
        sends, so that an unreachable sink does not delay a start."""


SINKS: Registry[RunnableSink[Any]] = Registry("headgate.sinks", RunnableSink)


def writer_of(publication: Publication) -> Writer:
    """The writer of a publication, by its sink."""
    return SINKS[publication.kind].writer(publication.sink, publication.name)
