"""Outages of sources: when a source that does not answer is tried again, and what the log says."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from headgate.declaration.quantities import span
from headgate.flow.sources.errors import SourceUnreachableError
from headgate.flow.sources.micro_batches import MicroBatchSource
from headgate.lake.control.driver_reports import Backlog, Outage, combined_outage
from headgate.lake.control.driver_requests import SkipRequest

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds
POLL = 0.25  # seconds between two calls of ``waits``


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


class AwaitedSource(MicroBatchSource):
    """Opens a source with ``open_``, and tries each request again that fails with
    SourceUnreachableError.

    While the source does not answer, it has no pending batch: so the driver, its other sources, its
    requests and its loads go on, and no thread waits. Only ``begin`` and the final poll block; they
    call ``waits`` repeatedly, which raises if the driver must end. Each method raises
    SourceUnreachableError if there was no answer for ``limit``.
    """

    def __init__(
        self,
        open_: Callable[[], MicroBatchSource],
        clock: Callable[[], datetime],
        monotonic: Callable[[], float] = time.monotonic,
        *,
        limit: timedelta | None = None,
        waits: Callable[[Outage], None] = lambda _: None,
    ) -> None:
        self._open, self._monotonic, self._waits = open_, monotonic, waits
        self._opened: MicroBatchSource | None = None
        # Brokers may list what they cannot deliver: an answer to one clears only its own outage.
        self._listing = Retry(clock, monotonic, limit)
        self._reading = Retry(clock, monotonic, limit)

    @property
    def inner(self) -> MicroBatchSource:
        """The source. Opens it at the first use."""
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    @property
    def every(self) -> float:  # type: ignore[override]
        return self.inner.every

    def begin(self) -> None:
        """Open the source, however long that takes."""
        self._persist(lambda: self.inner)

    def poll(self, *, final: bool) -> None:
        if final:
            self._persist(lambda: self.inner.poll(final=True))
            return
        was_away = self._listing.outage is not None
        if self._listing.is_due and self._try_to_list() and was_away:
            self._reading.hasten()

    def pending(self) -> int:
        return self.inner.pending() if self.may_ingest else 0

    def ingest(self) -> bool:
        began = self._monotonic()
        try:
            has_ingested = self.inner.ingest()
        except SourceUnreachableError as error:
            self._reading.failed(error, began)
            return False
        self._reading.succeeded()
        return has_ingested

    def backlog(self) -> Backlog:
        return self.inner.backlog()

    def has_ingested_all(self) -> bool:
        return self.inner.has_ingested_all()

    @property
    def may_ingest(self) -> bool:
        """Whether the source answers, or is due to be read again."""
        return self._listing.outage is None and self._reading.is_due

    @property
    def outage(self) -> Outage | None:
        return combined_outage((self._listing.outage, self._reading.outage))

    @property
    def remark(self) -> str | None:
        return self.inner.remark

    @property
    def set_aside(self) -> int:
        return self.inner.set_aside

    def skip(self, wanted: SkipRequest) -> None:
        self.inner.skip(wanted)

    def batch_took(self, took: timedelta) -> None:
        self.inner.batch_took(took)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    def _try_to_list(self) -> bool:
        """Returns whether the source has answered."""
        return self._try(lambda: self.inner.poll(final=False))

    def _persist(self, ask: Callable[[], object]) -> None:
        """Ask until there is an answer. Raises what ``waits`` raises."""
        while not self._try(ask):
            while (outage := self._listing.outage) and not self._listing.is_due:
                self._waits(outage)
                time.sleep(POLL)

    def _try(self, ask: Callable[[], object]) -> bool:
        began = self._monotonic()
        try:
            ask()
        except SourceUnreachableError as error:
            self._listing.failed(error, began)
            return False
        self._listing.succeeded()
        return True


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
