"""The feed of silver's and gold's own jobs: a batch only asks to catch up with what is above."""

from __future__ import annotations

from collections.abc import Sequence

from headgate.jobs.feeds.feed import Feed
from headgate.storage.backlog import Backlog
from headgate.tables.table import Table

POLL = 0.25  # seconds between looks at the tables above


class UpstreamFeed(Feed):
    """``upstream`` are readers of its own: tables are not shared between threads."""

    every = POLL

    def __init__(self, upstream: Sequence[Table]) -> None:
        self._upstream = upstream
        self._n = 0

    @property
    def position(self) -> int:
        return 0

    def poll(self, *, final: bool) -> None:
        self._n = min((table.refresh().n for table in self._upstream), default=0)

    def ends(self, after: int) -> list[int]:
        return [self._n] if self._n > after else []

    def backlog(self, after: int) -> Backlog:
        return Backlog("batches", max(0, self._n - after))

    def absorb(self, start: int, end: int) -> bool:
        return True

    def has_absorbed_all(self, position: int) -> bool:
        return position >= self._n
