"""The lock between the stream's thread, which runs micro-batches, and the supervising thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headgate.driver.errors import StopRequested

POLL_EVERY = 0.1  # seconds between checks whether the query is ending


class BatchLock:
    """Lets one thread at a time use the tables of a job and their handles."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ending = threading.Event()

    @property
    def is_ending(self) -> bool:
        """Whether the running batch is the last one."""
        return self._ending.is_set()

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Held by a micro-batch. Raises StopRequested instead of waiting once ``end`` was called:
        stopping the query waits for its batch, so a batch that waits here would be a deadlock."""
        while not self._lock.acquire(timeout=POLL_EVERY):
            if self.is_ending:
                raise StopRequested
        try:
            yield
        finally:
            self._lock.release()

    @contextmanager
    def between_batches(self) -> Iterator[bool]:
        """Held by the supervising thread. Waits until the running batch has ended. Yields True, as
        ``if_free`` does if no batch runs."""
        with self._lock:
            yield True

    @contextmanager
    def if_free(self) -> Iterator[bool]:
        """Held by the supervising thread if no batch runs. Yields whether the lock was taken."""
        taken = self._lock.acquire(blocking=False)
        try:
            yield taken
        finally:
            if taken:
                self._lock.release()

    def end(self, stop: Callable[[], None]) -> None:
        """Stop the query with ``stop`` after the running batch. A batch that waits for the lock
        raises StopRequested."""
        self._ending.set()
        with self._lock:
            stop()
