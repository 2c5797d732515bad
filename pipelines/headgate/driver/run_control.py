"""Stops and pauses of a run: a stop request, the end of input, a lost lease, a pause.

The streams' threads run micro-batches. Locks and a latch keep them and the supervising thread
apart. A thread that holds a lock takes only those after it: the lock of a stream, that of a bronze
stage, the lock of silver and gold (``RunControl.batch_lock``), that of bronze's commits.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Protocol

from headgate.commands import pipeline_command
from headgate.driver.errors import StopRequested
from headgate.driver.lease import Lease
from headgate.lake.control.driver_requests import paused_since, record_end, stop_requested
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.errors import FencedError

POLL_EVERY = 0.1  # seconds between checks while a batch waits


class Lock(Protocol):
    def acquire(self, *, timeout: float) -> bool: ...
    def release(self) -> None: ...


@contextmanager
def held(lock: Lock, check: Callable[[], None], within: float = math.inf) -> Iterator[bool]:
    """Hold a lock. While this waits for it, ``check`` is called repeatedly and may raise. Yields
    whether it was taken, for which this waits so many seconds."""
    ends = time.monotonic() + within
    while not (is_held := lock.acquire(timeout=min(POLL_EVERY, within))):
        check()
        if time.monotonic() >= ends:
            break
    try:
        yield is_held
    finally:
        if is_held:
            lock.release()


class BatchLock:
    """Lets one thread at a time run a batch, or use the tables of a job and their handles."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ending = threading.Event()

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Held by a micro-batch. Raises StopRequested instead of waiting once ``end`` was called:
        stopping the query waits for its batch, so a batch that waits here would be a deadlock."""
        with held(self._lock, self._require_going_on):
            yield

    def _require_going_on(self) -> None:
        if self._ending.is_set():
            raise StopRequested

    @contextmanager
    def between_batches(self) -> Iterator[bool]:
        """Waits until the other thread is done. Yields True, as ``if_free`` does if the lock is
        free."""
        with self._lock:
            yield True

    @contextmanager
    def if_free(self) -> Iterator[bool]:
        """Held if no other thread holds it. Yields whether the lock was taken."""
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
    """Open at first. Threads that list open and close it; threads that run batches pass it."""

    def __init__(self) -> None:
        self._moved = threading.Condition()
        self._since: datetime | None = None
        self._inside = 0

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
            self._inside += 1
        try:
            yield
        finally:
            with self._moved:
                self._inside -= 1


class RunControl:
    """Shared by the threads of a run. ``stop`` and ``finish`` may be called from any thread or
    signal handler."""

    def __init__(self, layout: Layout, pipeline: str, lease: Lease) -> None:
        self._layout, self._pipeline, self._lease = layout, pipeline, lease
        self._stop = threading.Event()
        self._finish = threading.Event()
        self._ended = threading.Event()
        self.batch_lock = BatchLock()
        self.pause_latch = PauseLatch()

    def stop(self) -> None:
        """End after the current micro-batch."""
        self._stop.set()

    def finish(self) -> None:
        """End after the current micro-batch as if input had ended."""
        self._finish.set()

    def end(self) -> None:
        """No further micro-batch may begin, and nothing waits for a source any more."""
        self._ended.set()

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
        if self._stop.is_set() or self._ended.is_set():
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
