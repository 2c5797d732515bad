"""The input of separate silver and gold jobs: their batches catch up with the upstream tables."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.flow.sources.micro_batches import MicroBatchSource
from headgate.lake.control.backlog import Backlog
from headgate.lake.tables.table import Table

POLL = 0.25  # seconds between reads of the upstream tables


class UpstreamTables(MicroBatchSource):
    """``tables`` are separate readers, because threads do not share tables."""

    every = POLL

    def __init__(self, tables: Sequence[Table]) -> None:
        self._tables = tables
        self._n = self._ingested = 0

    def poll(self, *, final: bool) -> None:
        self._n = min((table.refresh().n for table in self._tables), default=0)

    def pending(self) -> int:
        return int(self._n > self._ingested)

    def backlog(self) -> Backlog:
        return Backlog("batches", max(0, self._n - self._ingested))

    def ingest(self) -> bool:
        self._ingested = self._n
        return True

    def has_ingested_all(self) -> bool:
        return self._ingested >= self._n
