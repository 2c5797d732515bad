"""The lock between a micro-batch, on the stream's thread, and the supervising thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from headgate.jobs.errors import StopRequested

LOOK_EVERY = 0.1  # seconds between looks at whether the query is about to end


class BatchLock:
    """The tables of a job and their handles are used by one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ending = threading.Event()

    @property
    def is_ending(self) -> bool:
        """No batch comes after the one that runs."""
        return self._ending.is_set()

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Held by a micro-batch. Raises StopRequested instead of waiting once the query is ended:
        stopping it waits for the batch that would wait here."""
        while not self._lock.acquire(timeout=LOOK_EVERY):
            if self.is_ending:
                raise StopRequested
        try:
            yield
        finally:
            self._lock.release()

    @contextmanager
    def between_batches(self) -> Iterator[None]:
        """Held by the supervising thread; waits for the batch that runs."""
        with self._lock:
            yield

    @contextmanager
    def if_free(self) -> Iterator[bool]:
        """Held by the supervising thread if no batch runs; gives whether it is held."""
        taken = self._lock.acquire(blocking=False)
        try:
            yield taken
        finally:
            if taken:
                self._lock.release()

    def end(self, stop: Callable[[], None]) -> None:
        """Stop the query with ``stop`` after the batch that runs; what waits gives up."""
        self._ending.set()
        with self._lock:
            stop()
