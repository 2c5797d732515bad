"""The stage of one publication, as jobs see it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime

from headgate.flow.publish.position import Position
from headgate.flow.publish.sinks.writers import Mirror, Writer, failure_of
from headgate.lake.tables.data_file import DataFile


class Stage(ABC):
    """The only writer of one publication's position, which is in ``table``. It follows ``source``;
    ``layer`` is the layer of its job."""

    def __init__(self, position: Position, sink: Writer | Mirror) -> None:
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
