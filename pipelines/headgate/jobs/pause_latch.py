"""A latch that a pause closes: a micro-batch waits until it is open again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

LOOK_EVERY = 0.1  # seconds between calls of ``check`` while a batch waits


class PauseLatch:
    """Open at first. The supervising thread opens and closes it, the stream's passes it."""

    def __init__(self) -> None:
        self._moved = threading.Condition()
        self._since: datetime | None = None
        self._inside = False

    def set(self, since: datetime | None) -> None:
        """Close it, which began at ``since``; None opens it."""
        with self._moved:
            self._since = since
            self._moved.notify_all()

    @property
    def is_closed(self) -> bool:
        return self._since is not None

    @property
    def at_rest_since(self) -> datetime | None:
        """When it was closed, once the batch that was inside then has ended."""
        with self._moved:
            return None if self._inside else self._since

    @contextmanager
    def passage(self, check: Callable[[], None]) -> Iterator[None]:
        """A micro-batch, once the latch is open. While it waits, ``check`` is called again and
        again, and may raise."""
        with self._moved:
            while self._since is not None:
                check()
                self._moved.wait(LOOK_EVERY)
            self._inside = True
        try:
            yield
        finally:
            with self._moved:
                self._inside = False
