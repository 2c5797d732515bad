"""Writers of sinks: what they get, and the errors that they raise.

A sink is a log or a mirror. A *log*, such as a topic, receives the rows of each commit in order, as
messages. A *mirror*, such as a table in a database, always equals one committed version of
Headgate's table.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.declaration.contracts.sink import sink_of
from headgate.declaration.model import Publication
from headgate.lake.storage.files import Storage

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

BRIEFLY = 0.25
"""Seconds for which a batch waits for a call of a sink in the background."""
KEY = "headgate_key"
"""The first column of a mirror's rows: 32 bytes, a hash of what identifies a row."""


class SinkRefusalError(Exception):
    """A sink refuses rows, in most cases until a person acts. The message says why and what to do,
    with marked commands and without secrets."""


class NoLettersError(Exception):
    """A sink of this kind keeps no dead letters, so it takes none."""


class SinkAwayError(Exception):
    """A sink is unavailable, or refuses every row. The message says which, without secrets."""


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
    (``flow.publish.log_stage``). The header ``headgate-id`` is a function of the row, so it is the
    same each time the row is sent. A message without a value says that a result of gold is gone;
    ``rows`` has no row for it. Several gold rows of one key are in one partition of the frame,
    the lowest revision first. There are at most ``count`` rows, unless another tool has written a
    file without statistics. ``size`` is that of their files, in bytes.
    """

    rows: DataFrame
    messages: DataFrame
    after: int
    upto: int
    count: int
    size: int = 0


@dataclass(frozen=True)
class MirrorVersion:
    """A version of a table. ``table`` is the id of its log, ``files`` the digest of its live files,
    ``n`` the batch id that it has processed."""

    table: str
    number: int
    files: str
    n: int = 0


@dataclass(frozen=True)
class VersionDifference:
    """The change from the rows of the version ``after`` to those of the version ``upto``.

    ``rows`` are changed or new. They have the column ``KEY`` and those of ``schema``, where nested
    values are JSON texts. ``keys`` are the columns that identify a row. ``gone`` has the ``KEY`` of
    the deleted rows; None stands for all rows that are not in ``rows``. ``after`` is None if the
    sink has no version yet.
    """

    rows: Iterable[pa.Table]
    gone: pa.Table | None
    schema: pa.Schema
    keys: tuple[str, ...]
    after: MirrorVersion | None
    upto: MirrorVersion


_PART = 32 << 20


def parts_of(rows: int, most: int, size: int) -> int:
    """In how many parts rows fit into memory: about ``most`` rows and 32 MiB of compressed files
    each, because a few rows may be large. ``size`` is that of the files of all rows, in bytes."""
    return max(math.ceil(rows / most), math.ceil(size / _PART), 1)


class Writer(ABC):
    """Sends the rows of one publication to a log. Errors of the sink are raised unchanged.

    A publication commits its position after each ``send``. If a driver ends in between, the next
    driver sends the rows again, unless the sink prevents it:

    - An *at-least-once* sink implements ``send`` only. Rows that are sent twice have the same ids.
    - A *transactional* sink stores ``upto`` in one transaction with the rows, and returns it from
      ``position``. In that transaction it should check that ``after`` is still its position:
      another driver may have sent rows in between.
    """

    @abstractmethod
    def send(self, outgoing: Outgoing) -> bool:
        """Send the rows. Returns True if the sink has stored all of them durably. False means that
        it still sends them in the background: call ``send`` again with the same rows. Batches wait
        for this call."""

    @abstractmethod
    def failure(self, error: Exception) -> str | None:
        """A message about an error of the sink, without secrets; None if the error has another
        cause. After an error of the sink, the rows are sent again later."""

    def position(self, held: int) -> int:
        """The version of the table's log up to which the sink has all rows. ``held`` is the version
        that the publication has committed; the result is never smaller."""
        return held

    def close(self) -> None:
        """End the writer's work in the background."""
        return


class Mirror(ABC):
    """Keeps the rows of a table as of one version of its log. Errors of the sink, and
    SinkRefusalError, are raised unchanged.

    The sink stores the position. It writes rows and position in one transaction, and checks in it
    that ``after`` is still its position, because two drivers may write. ``held``, ``apply`` and
    ``close`` are called one after the other on a background thread, and may take long.
    """

    @abstractmethod
    def held(self) -> MirrorVersion | None:
        """The version whose rows the sink has; None if it has nothing yet."""

    @abstractmethod
    def apply(self, difference: VersionDifference) -> None:
        """Make the rows those of ``difference.upto``."""

    @abstractmethod
    def failure(self, error: Exception) -> str | None:
        """As ``Writer.failure``."""

    def close(self) -> None:
        """Close its connections."""
        return


def writer_of(publication: Publication, context: SinkContext) -> Writer | Mirror:
    """The writer or mirror of a publication."""
    return sink_of(publication).writer(publication.sink, context)


def failure_of(sink: Writer | Mirror, error: Exception) -> str | None:
    """A message about an error of a sink, or its refusal; None if the error has another cause."""
    return str(error) if isinstance(error, SinkRefusalError) else sink.failure(error)


def headers_of(message: Mapping[str, Any]) -> dict[str, str]:
    """The headers of a message as texts."""
    return {each["key"]: bytes(each["value"]).decode() for each in message["headers"]}
