"""What makes a job's stream move: new files for bronze, new batches above for silver and gold."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol

from headgate.jobs.intake import Intake
from headgate.tables.table import Table

POLL = 0.25  # seconds between looks at the tables above
LIST_EVERY = 1.0  # seconds between listings of the landing folder


class Feed(Protocol):
    """A log of positions. ``poll`` and ``ends`` are called by the supervising thread, ``absorb``
    by the stream's; ``every`` is the time between polls in seconds."""

    every: float

    @property
    def position(self) -> int:
        """Where the stream begins."""

    def poll(self, *, final: bool) -> None:
        """Look for more; ``final``: wait until everything that is there now can be read."""

    def ends(self, after: int) -> list[int]:
        """Where micro-batches behind ``after`` may end, rising."""

    def backlog(self, after: int) -> tuple[int, int]:
        """Files or batches behind ``after``, and their bytes if known."""

    def absorb(self, start: int, end: int) -> None:
        """Commit ``(start, end]`` to the first table of the job, if it is this feed's to do."""


class BronzeFeed:
    """Batches come from the source."""

    every = LIST_EVERY

    def __init__(self, intake: Intake) -> None:
        self._intake = intake

    @property
    def position(self) -> int:
        return self._intake.position

    def poll(self, *, final: bool) -> None:
        """List what is new; ``final``: wait until nothing is settling any more."""
        while self._intake.list_new() and final:
            time.sleep(POLL)

    def ends(self, after: int) -> list[int]:
        return self._intake.ends(after)

    def backlog(self, after: int) -> tuple[int, int]:
        return self._intake.backlog(after)

    def absorb(self, start: int, end: int) -> None:
        self._intake.absorb(start, end)


class TableFeed:
    """Batches come from the tables above: each asks only to catch up with them. ``upstream`` are
    readers of its own: tables are not shared between threads."""

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

    def backlog(self, after: int) -> tuple[int, int]:
        return max(0, self._n - after), 0

    def absorb(self, start: int, end: int) -> None:
        pass
