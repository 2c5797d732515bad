"""The position of a publication: a Delta table without rows, whose commits store the position."""

from __future__ import annotations

import hashlib
from datetime import datetime

import pyarrow as pa

from headgate import exit_codes
from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import PUBLICATION
from headgate.declaration.model import Pipeline, Publication
from headgate.errors import HeadgateError
from headgate.lake.storage.files import Storage
from headgate.lake.tables.payloads.publication import PublicationPayload
from headgate.lake.tables.table import Table

MOST_UNSENT = 1000
"""The number of commits with nothing to send after which the position is moved."""


class PublicationChangedError(HeadgateError, code=exit_codes.USAGE):
    """The publication's position was recorded for another definition."""


class Position:
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
