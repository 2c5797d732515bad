"""Whose turn it is: a micro-batch's, on the stream's thread, or the supervising thread's."""

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
        """A micro-batch's turn. Raises StopRequested instead of waiting once the query is ended:
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
        """The supervising thread's turn, when the batch that runs is done."""
        with self._lock:
            yield

    @contextmanager
    def if_free(self) -> Iterator[bool]:
        """The supervising thread's turn if no batch runs: whether it has it."""
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
