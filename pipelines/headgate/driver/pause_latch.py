"""A latch that a pause closes. A micro-batch waits until the latch is open again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

POLL_EVERY = 0.1  # seconds between calls of ``check`` while a batch waits


class PauseLatch:
    """Open at first. The supervising thread opens and closes it; the stream's thread passes it."""

    def __init__(self) -> None:
        self._moved = threading.Condition()
        self._since: datetime | None = None
        self._inside = False

    def set(self, since: datetime | None) -> None:
        """Close the latch for a pause that began at ``since``; None opens it."""
        with self._moved:
            self._since = since
            self._moved.notify_all()

    @property
    def is_closed(self) -> bool:
        return self._since is not None

    @property
    def paused_since(self) -> datetime | None:
        """When the latch was closed; None while it is open or a batch still runs."""
        with self._moved:
            return None if self._inside else self._since

    @contextmanager
    def passage(self, check: Callable[[], None]) -> Iterator[None]:
        """Run a micro-batch once the latch is open. Until then, ``check`` is called repeatedly and
        may raise."""
        with self._moved:
            while self._since is not None:
                check()
                self._moved.wait(POLL_EVERY)
            self._inside = True
        try:
            yield
        finally:
            with self._moved:
                self._inside = False
