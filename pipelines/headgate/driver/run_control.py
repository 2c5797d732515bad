"""Stops and pauses of a run: a stop request, the end of input, a lost lease, a pause.

The stream's thread runs micro-batches. A lock and a latch keep it and the supervising thread apart.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from headgate.commands import pipeline_command
from headgate.driver.errors import StopRequested
from headgate.driver.lease import Lease
from headgate.lake.control.driver_requests import paused_since, record_end, stop_requested
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.errors import FencedError

POLL_EVERY = 0.1  # seconds between checks while a batch waits


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


class RunControl:
    """Shared by the threads of a run. ``stop`` and ``finish`` may be called from any thread or
    signal handler."""

    def __init__(self, layout: Layout, pipeline: str, lease: Lease) -> None:
        self._layout, self._pipeline, self._lease = layout, pipeline, lease
        self._stop = threading.Event()
        self._finish = threading.Event()
        self.batch_lock = BatchLock()
        self.pause_latch = PauseLatch()

    def stop(self) -> None:
        """End after the current micro-batch."""
        self._stop.set()

    def finish(self) -> None:
        """End after the current micro-batch as if input had ended."""
        self._finish.set()

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    @property
    def is_ending(self) -> bool:
        """Whether no further micro-batch may begin, for any reason."""
        return self._stop.is_set() or self._finish.is_set() or self._lease.is_lost

    def observe_stop_requests(self) -> None:
        """Stop if a stop was requested since this driver took the lease."""
        if stop_requested(self._layout, self._lease.epoch):
            self._stop.set()

    def is_asked_to_stop(self) -> bool:
        """Whether a stop was requested, by a signal or a document."""
        self.observe_stop_requests()
        return self.is_stopping

    def record_end(self) -> None:
        """Record that a person has ended this driver. Does nothing before it has its lease."""
        if self._lease.epoch:
            record_end(self._layout, self._lease.epoch)

    def observe_pause(self) -> None:
        self.pause_latch.set(paused_since(self._layout))

    def wait(self, seconds: float) -> None:
        """Return after some seconds, or as soon as a stop is requested."""
        self._stop.wait(seconds)

    def check(self) -> None:
        """Raises FencedError if the lease is lost, StopRequested if no further micro-batch may
        begin."""
        self.require_lease()
        if self._stop.is_set() or self.batch_lock.is_ending:
            raise StopRequested

    def check_requests(self) -> None:
        """As ``check``, also for a stop that was requested since this driver took the lease."""
        self.observe_stop_requests()
        self.check()

    def require_lease(self) -> None:
        """Raises FencedError if another driver has the lease."""
        if self._lease.is_lost:
            raise self.fenced()

    def fenced(self) -> FencedError:
        message = f"{self._pipeline}: another driver has taken the lease"
        return FencedError(message, remedy=pipeline_command("status"))
