"""The full contract of a sink: the declaration's contract, and the runtime methods.

A sink is one of two kinds. A *log* takes the rows of each commit one after the other, as messages:
a topic does. A *mirror* is a table that always equals one committed version of Headgate's table: a
database has one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from headgate.declaration.model import Publication
from headgate.declaration.sinks import SinkKind
from headgate.registry import Registry
from headgate.storage.files import Storage

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from headgate.sinks.letters import Letter

Sink = TypeVar("Sink")

KEY = "headgate_key"
"""The first column of a mirror's rows: 32 bytes, a hash of what tells a row apart."""


class SinkRefusalError(Exception):
    """A sink cannot take rows until a person has done something. The text says what, with marked
    commands, and without secrets."""


class SinkAwayError(Exception):
    """A sink is not there, or refuses every row. The text says which, without secrets."""


@dataclass(frozen=True)
class SinkContext:
    """The publication that a sink serves. ``storage`` is the folder of its pipeline."""

    pipeline: str
    name: str
    storage: Storage


@dataclass(frozen=True)
class Outgoing:
    """The rows of the commits of a table's log in ``(after, upto]``.

    ``rows`` have the columns of the table, and for gold also ``_batch``: the batch id of a change,
    null for a final row. ``messages`` are the same rows as ``key``, ``value`` and ``headers``
    (``publish.messages``). The header ``headgate-id`` is a function of the row, so it is the same
    each time the row is sent. Several gold rows of one key are in one partition of the frame, the
    lowest revision first.
    """

    rows: DataFrame
    messages: DataFrame
    after: int
    upto: int


@dataclass(frozen=True)
class Version:
    """A version of a table. ``table`` is the id of its log, ``files`` the digest of its live files,
    ``n`` the batch id that it has absorbed."""

    table: str
    number: int
    files: str
    n: int = 0


@dataclass(frozen=True)
class Difference:
    """What makes the rows of the version ``after`` those of the version ``upto``.

    ``rows`` are changed or new. They have the column ``KEY`` and those of ``schema``, where nested
    values are JSON texts. ``keys`` are the columns that tell rows apart. ``gone`` has the ``KEY``
    of the rows that go; None stands for all rows that are not in ``rows``. ``after`` is None if the
    sink has no version yet.
    """

    rows: Iterable[pa.Table]
    gone: pa.Table | None
    schema: pa.Schema
    keys: tuple[str, ...]
    after: Version | None
    upto: Version


class Writer(ABC):
    """Sends the rows of one publication to a log. Errors of the sink are raised unchanged.

    A publication commits its position after each ``send``. If a driver ends in between, the next
    driver sends the rows again, unless the sink prevents it:

    - An *at-least-once* sink implements ``send`` only. Rows that are sent twice have the same ids.
    - A *transactional* sink stores ``upto`` in one transaction with the rows, and returns it from
      ``position``. In that transaction it should check that ``after`` is still its position:
      another driver may have been faster.
    """

    @abstractmethod
    def send(self, outgoing: Outgoing) -> bool:
        """Send the rows. True: the sink has stored all of them durably. False: it goes on by itself
        and must be asked again, with the same rows. Batches wait for this call."""

    @abstractmethod
    def failure(self, error: Exception) -> str | None:
        """A message about an error of the sink, without secrets; None if the error has another
        cause. After an error of the sink, the rows are sent again later."""

    def position(self, held: int) -> int:
        """The version of the table's log up to which the sink has all rows. ``held`` is the version
        that the publication has committed; it is never greater than the result."""
        return held

    def close(self) -> None:
        """End what the writer does by itself."""
        return


class Mirror(ABC):
    """Keeps the rows of a table as they are at a version of its log. Errors of the sink, and
    SinkRefusalError, are raised unchanged.

    The position is the sink's own. Rows and position are one transaction, in which the sink checks
    that ``after`` is still its position: two drivers may write. ``held``, ``apply`` and ``close``
    are called on a thread of their own, one after the other, and may take long.
    """

    @abstractmethod
    def held(self) -> Version | None:
        """The version whose rows the sink has; None if it has nothing yet."""

    @abstractmethod
    def apply(self, difference: Difference) -> None:
        """Make the rows those of ``difference.upto``."""

    @abstractmethod
    def failure(self, error: Exception) -> str | None:
        """As that of a ``Writer``."""

    def close(self) -> None:
        """End its connections."""
        return


class RunnableSink(SinkKind[Sink]):
    """Members import Spark only inside methods, because declarations are read without it."""

    @abstractmethod
    def writer(self, sink: Sink, context: SinkContext) -> Writer | Mirror:
        """What serves a publication during one run of a driver. It connects when it is used, so
        that an unreachable sink does not delay a start."""

    def reset(self, sink: Sink, context: SinkContext) -> str | None:
        """Forget the position and remove the rows of a publication, so that it begins with the
        first row. Returns what was done; None if the sink has no position of its own. Raises
        SinkRefusalError."""
        return None

    def resend(self, sink: Sink, letter: Letter) -> str | None:
        """Send a dead letter once more, now. Returns why it is refused again; None if it was
        taken. Raises SinkAwayError. Only sinks that keep dead letters do this."""
        raise NotImplementedError


SINKS: Registry[RunnableSink[Any]] = Registry("headgate.sinks", RunnableSink)


def writer_of(publication: Publication, context: SinkContext) -> Writer | Mirror:
    """What serves a publication, by its sink."""
    return SINKS[publication.kind].writer(publication.sink, context)


def headers_of(message: Mapping[str, Any]) -> dict[str, str]:
    """The headers of a message as texts."""
    return {each["key"]: bytes(each["value"]).decode() for each in message["headers"]}
