"""A publication: its position, its stage as drivers see it, and the columns that identify its rows.

The position is a Delta table without rows, whose commits store the position.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from datetime import datetime

import pyarrow as pa

from headgate import exit_codes
from headgate.declaration.contracts.operator import key_of_gold, late_identity
from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import PUBLICATION
from headgate.declaration.model import Pipeline, Publication
from headgate.errors import HeadgateError
from headgate.flow.publish.sinks.writers import Mirror, Writer, failure_of
from headgate.lake.storage.files import Storage
from headgate.lake.storage.layout import copy_id
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.payloads.publication import PublicationPayload
from headgate.lake.tables.table import Table

MOST_UNSENT = 1000
"""The number of commits with nothing to send after which the position is moved."""


class PublicationChangedError(HeadgateError, code=exit_codes.USAGE):
    """The publication's position was recorded for another definition."""


class PublishedPosition:
    """The position of one publication. ``source`` is the table whose rows are published, ``table``
    stores the position, ``layer`` is the layer of the job that is its only writer."""

    def __init__(self, storage: Storage, pipeline: Pipeline, publication: Publication) -> None:
        self.publication = publication
        node = graph_of(pipeline)[PUBLICATION.path(publication.name)]
        self.layer = node.layer
        self.source = Table(storage, node.upstream[0], pipeline=pipeline.name)
        self.table = Table(storage, node.path, pipeline=pipeline.name)

    @property
    def definition(self) -> str:
        """Identifies what is published: the source table, and ``when`` its rows are sent."""
        meant = f"{self.source.name} {self.publication.when}"
        return hashlib.sha256(meant.encode()).hexdigest()

    def create(self) -> None:
        """Create the table of the position. A new publication of an existing table begins with the
        table's first commit. Raises PublicationChangedError."""
        schema = pa.schema([("at", pa.timestamp("us", "UTC"))])
        self.table.create(schema, self.definition, time_column="at")
        if self.table.refresh().definition != self.definition:
            name = self.publication.name
            raise PublicationChangedError(
                f"publish {name}: it published another table before, or with another value of the "
                "key when",
                remedy=f"give it another name than {name}, and it begins with the first row",
            )

    @property
    def version(self) -> int:
        """The version of the source's log up to which rows were published."""
        return PublicationPayload.of(self.table.refresh()).version

    @property
    def event(self) -> str:
        """The name of the last event that was sent, if events are published."""
        return PublicationPayload.of(self.table.refresh()).event

    def move(self, version: int, now: datetime, n: int | None = None, *, event: str = "") -> None:
        """Commit a position. Raises CommitRefusedError, FencedError."""
        held = self.table.refresh()
        payload = PublicationPayload(version, event)
        self.table.commit(held.advanced_to(held.n if n is None else n, now, payload))


class PublicationStage(ABC):
    """The only writer of one publication's position, which is in ``table``. It follows ``source``;
    ``layer`` is the layer of its job."""

    def __init__(self, position: PublishedPosition, sink: Writer | Mirror) -> None:
        self._position, self._sink = position, sink
        self.publication, self.layer = position.publication, position.layer
        self.source, self.table = position.source, position.table

    def create(self) -> None:
        """Create the table of the position. Raises PublicationChangedError."""
        self._position.create()

    @abstractmethod
    def catch_up(self, now: datetime) -> bool:
        """Publish everything that is available now. Returns whether everything is published;
        otherwise it must be called again. Raises the errors of the sink, CommitRefusedError,
        FencedError."""

    def is_sent(self, file: DataFile) -> bool:
        """Whether rows of a file of ``source`` are published."""
        return self.publication.when != "final" or file.is_final

    def failure(self, error: Exception) -> str | None:
        """A message about an error of the sink; None if the error has another cause."""
        return failure_of(self._sink, error)

    @abstractmethod
    def close(self) -> None:
        """End the sink's work in the background."""


JSON = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX", "ignoreNullFields": "false"}
"""The options for rows as JSON in Spark, with which equal rows give equal texts."""


def identity_of(pipeline: Pipeline, publication: Publication) -> tuple[str, ...]:
    """The columns that identify a row in a version of a published table."""
    if publication.layer == "quarantine":
        return ("partition", "offset", "table")
    table = pipeline.gold[publication.table]
    if publication.layer == "late":
        return late_identity(table)
    return key_of_gold(table)


def log_id(table: Table) -> str:
    """Identifies the log of a table, and distinguishes it from the logs of copies."""
    return f"{table.handle.metadata().id} {copy_id(table.home)}".strip()
