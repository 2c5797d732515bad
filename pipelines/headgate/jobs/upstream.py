"""What moves silver's and gold's own jobs: a batch only asks to catch up with what is above."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.sources.micro_batches import MicroBatchSource
from headgate.storage.backlog import Backlog
from headgate.tables.table import Table

POLL = 0.25  # seconds between looks at the tables above


class UpstreamTables(MicroBatchSource):
    """``tables`` are readers of its own: tables are not shared between threads."""

    every = POLL

    def __init__(self, tables: Sequence[Table]) -> None:
        self._tables = tables
        self._n = self._absorbed = 0

    def poll(self, *, final: bool) -> None:
        self._n = min((table.refresh().n for table in self._tables), default=0)

    def pending(self) -> int:
        return int(self._n > self._absorbed)

    def backlog(self) -> Backlog:
        return Backlog("batches", max(0, self._n - self._absorbed))

    def absorb(self) -> bool:
        self._absorbed = self._n
        return True

    def has_absorbed_all(self) -> bool:
        return self._absorbed >= self._n
