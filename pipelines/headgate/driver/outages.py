"""Outages of sources: when a source that does not answer is tried again, and what the log says."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from headgate.declaration.quantities import span
from headgate.flow.sources.errors import SourceUnreachableError
from headgate.lake.control.driver_reports import Outage

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds


def pause_after(attempts: int) -> float:
    """The seconds between the last of some failed attempts in a row and the next attempt."""
    return float(min(FIRST_PAUSE * 2 ** min(attempts - 1, 16), LONGEST_PAUSE))


class Retry:
    """Counts failed attempts, and tells when the next one is due. Several threads use it.
    ``monotonic`` is in seconds. ``limit`` is how long there may be no answer; None: for ever."""

    def __init__(
        self,
        clock: Callable[[], datetime],
        monotonic: Callable[[], float],
        limit: timedelta | None = None,
    ) -> None:
        self._clock, self._monotonic, self._limit = clock, monotonic, limit
        self._lock = threading.Lock()
        self._outage: Outage | None = None
        self._began = self._due = 0.0

    @property
    def outage(self) -> Outage | None:
        """What does not answer; None after an answer."""
        return self._outage

    @property
    def is_due(self) -> bool:
        """Whether the next attempt may begin."""
        return self._outage is None or self._monotonic() >= self._due

    def hasten(self) -> None:
        """Make the next attempt due now."""
        self._due = self._monotonic()

    def succeeded(self) -> None:
        with self._lock:
            self._outage = None

    def failed(self, error: SourceUnreachableError, began: float) -> None:
        """Record that an attempt that ``began`` then had no answer. Raises the error if there was
        none for ``limit``."""
        with self._lock:
            now, tried = self._monotonic(), self._clock()
            before = self._outage
            if before is None:
                self._began = began
            silent = timedelta(seconds=now - self._began)
            # Each time anew: the wall clock may have been set since the last attempt.
            attempts = before.attempts + 1 if before else 1
            self._outage = Outage(error.message, tried - silent, tried, attempts)
            self._due = now + pause_after(attempts)
            if self._limit is not None and silent >= self._limit:
                raise _given_up(error, silent) from error


def _given_up(error: SourceUnreachableError, silent: timedelta) -> SourceUnreachableError:
    asked = f"; asked for {silent.total_seconds():.0f} s" if silent >= timedelta(seconds=1) else ""
    return type(error)(f"{error.message}{asked}", remedy=error.remedy)


FIRST_INTERVAL, LONGEST_INTERVAL = timedelta(minutes=1), timedelta(hours=1)


class OutageLines:
    """A line when an outage begins, more of them after growing intervals, and one when it is over.
    Several threads use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outage: Outage | None = None
        self._next, self._interval = datetime.min.replace(tzinfo=UTC), FIRST_INTERVAL

    def next(self, outage: Outage | None, now: datetime) -> str | None:
        """The line to log now; None if there is nothing new."""
        with self._lock:
            before, self._outage = self._outage, outage
            if outage is None:
                if before is None:
                    return None
                return f"over after {span(before.lasts(now))}: {before.what}"
            if before is None:
                self._interval = FIRST_INTERVAL
            elif now < self._next:
                return None
            self._next = now + self._interval
            self._interval = min(2 * self._interval, LONGEST_INTERVAL)
            return f"{outage.said(now)}, and nothing is lost"
