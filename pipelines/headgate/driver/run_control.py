"""Stops and pauses of a run: a stop request, the end of input, a lost lease, a pause."""

from __future__ import annotations

import threading

from headgate.commands import pipeline_command
from headgate.driver.batch_lock import BatchLock
from headgate.driver.errors import StopRequested
from headgate.driver.lease import Lease
from headgate.driver.pause_latch import PauseLatch
from headgate.lake.control.pausing import paused_since
from headgate.lake.control.stopping import record_end, stop_requested
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.errors import FencedError


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
