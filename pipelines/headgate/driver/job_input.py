"""The input of a streaming query: a source, or the upstream tables of a job."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import timedelta

from headgate.errors import HeadgateError
from headgate.lake.control.driver_reports import Backlog, Outage, SourceReport
from headgate.lake.control.driver_requests import SkipRequest
from headgate.lake.tables.table import Table

POLL = 0.25  # seconds between reads of the upstream tables


class JobInput(ABC):
    """The stream's thread calls ``ingest`` and ``batch_took``, its listing thread ``begin``,
    ``poll``, ``pending`` and ``skip``. Any thread may read what is known.
    ``listing_lock`` is held while a listing writes tables."""

    listing_lock: threading.RLock

    def __init__(self) -> None:
        self.listing_lock = threading.RLock()

    @property
    @abstractmethod
    def every(self) -> float:
        """Seconds between two listings."""

    @property
    def outage(self) -> Outage | None:
        """Why the input does not answer; None if it does."""
        return None

    @property
    def failure(self) -> HeadgateError | None:
        """Why the input cannot be read before a person acts: it is held."""
        return None

    def begin(self) -> None:
        """Open the input, however long that takes."""
        return

    @abstractmethod
    def poll(self, *, final: bool) -> None:
        """Look for new input. ``final``: the run ends with the present input."""

    @abstractmethod
    def pending(self) -> int:
        """The number of batches that wait and may be read now."""

    @abstractmethod
    def ingest(self) -> bool:
        """Take the next batch. Returns False if there was none."""

    @abstractmethod
    def has_ingested_all(self) -> bool:
        """Whether everything of the final poll was ingested."""

    @abstractmethod
    def reports(self) -> Mapping[str, SourceReport]:
        """What is known of the sources that this input has, by name."""

    def skip(self, wanted: SkipRequest) -> None:
        """Skip files that are set aside."""
        return

    def batch_took(self, took: timedelta) -> None:
        """Called with the duration of the last batch, including gold."""
        return

    def close(self) -> None:
        """Release resources."""
        return


class UpstreamTables(JobInput):
    """The upstream tables of silver's or gold's job, by path, as separate readers, because threads
    do not share handles. ``sources`` are the sources of the pipeline, with the tables that depend
    on each."""

    every = POLL

    def __init__(self, tables: Sequence[Table], sources: Mapping[str, Sequence[str]]) -> None:
        super().__init__()
        self._tables, self._sources = {table.name: table for table in tables}, sources
        self._there = dict.fromkeys(self._tables, 0)
        self._ingested = dict(self._there)

    def poll(self, *, final: bool) -> None:
        self._there = {path: table.refresh().n for path, table in self._tables.items()}

    def pending(self) -> int:
        return int(not self.has_ingested_all())

    def ingest(self) -> bool:
        self._ingested = dict(self._there)
        return True

    def has_ingested_all(self) -> bool:
        return self._there == self._ingested

    def reports(self) -> Mapping[str, SourceReport]:
        return {
            name: SourceReport(Backlog("batches", max(map(self._behind, paths), default=0)))
            for name, paths in self._sources.items()
        }

    def _behind(self, path: str) -> int:
        return max(self._there[path] - self._ingested[path], 0)
