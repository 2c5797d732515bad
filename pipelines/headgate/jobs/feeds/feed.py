"""What makes a job's stream move: more in the source for bronze, new batches above for the rest."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from headgate.storage.backlog import Backlog


class Feed(Protocol):
    """A log of positions. ``poll``, ``ends``, ``backlog`` and ``has_absorbed_all`` are called by
    the supervising thread, ``absorb`` by the stream's; ``every`` is the time between polls in
    seconds."""

    every: float

    @property
    def position(self) -> int:
        """Where the stream begins."""

    def poll(self, *, final: bool) -> None:
        """Look for more; ``final``: what is there now is all that will be asked for, so wait until
        it can be read."""

    def ends(self, after: int) -> list[int]:
        """Where micro-batches behind ``after`` may end, rising."""

    def backlog(self, after: int) -> Backlog:
        """What lies behind ``after``."""

    def absorb(self, start: int, end: int) -> bool:
        """Commit ``(start, end]`` to the first table of the job, if it is this feed's to do;
        False where there turned out to be nothing."""

    def batch_took(self, took: timedelta) -> None:
        """How long the last batch took, down to gold. Of no matter where the declaration alone
        bounds batches."""
        return

    @property
    def trouble(self) -> str | None:
        """What keeps the source from answering, if anything, in words."""
        return None

    def has_absorbed_all(self, position: int) -> bool:
        """Whether everything of the final poll was absorbed."""

    def close(self) -> None:
        """Let go of what it holds."""
        return
