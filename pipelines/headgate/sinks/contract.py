"""What a sink is to a driver: the declaration's contract, and what runs."""

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
    """What the commits of a table's log in ``(after, upto]`` have brought.

    ``rows`` have the columns of the table, and of gold also ``_batch``: the batch of a change, null
    for what is final. ``messages`` are the same rows as ``key``, ``value`` and ``headers``
    (``publish.messages``). The header ``headgate-id`` is a function of the row: it is the same
    whenever the row is sent.
    """

    rows: DataFrame
    messages: DataFrame
    after: int
    upto: int


class Writer(ABC):
    """Sends the rows of one publication. Errors of the sink are raised as they come.

    A publication commits its position after each ``send``. A driver that ends in between makes the
    next one send again, unless the sink knows better:

    - An *at-least-once* sink implements ``send`` only. What comes twice has the same ids.
    - A *transactional* sink keeps ``upto`` in one transaction with the rows, and says so in
      ``position``. In that transaction it should require that ``after`` is still its position:
      another driver may have been faster.
    """

    @abstractmethod
    def send(self, outgoing: Outgoing) -> None:
        """Return once the sink has all rows for good."""

    @abstractmethod
    def failure(self, error: Exception) -> str | None:
        """What to say of an error of the sink, without secrets; None if it is about something
        else. After an error of the sink, the rows are sent again a while later."""

    def position(self, held: int) -> int:
        """The version of the table's log up to which everything is in the sink. ``held`` is what
        the publication has committed, and never more than that."""
        return held


class RunnableSink(SinkKind[Sink]):
    """Members import Spark only inside methods, because declarations are read without it."""

    @abstractmethod
    def writer(self, sink: Sink, name: str) -> Writer:
        """The writer of the publication ``name``, for as long as a driver runs. It connects when
        it sends: a sink that is away must not hold up a start."""


SINKS: Registry[RunnableSink[Any]] = Registry("headgate.sinks", RunnableSink)


def writer_of(publication: Publication) -> Writer:
    """The writer of a publication, by its sink."""
    return SINKS[publication.kind].writer(publication.sink, publication.name)
