"""The lines about outages in a driver's log."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

from headgate.declaration.quantities import span
from headgate.lake.control.outage import Outage

FIRST, LONGEST = timedelta(minutes=1), timedelta(hours=1)


class OutageLines:
    """A line when an outage begins, more of them after growing intervals, and one when it is over.
    Several threads use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outage: Outage | None = None
        self._next, self._interval = datetime.min.replace(tzinfo=UTC), FIRST

    def next(self, outage: Outage | None, now: datetime) -> str | None:
        """The line to log now; None if there is nothing new."""
        with self._lock:
            before, self._outage = self._outage, outage
            if outage is None:
                if before is None:
                    return None
                return f"over after {span(before.lasts(now))}: {before.what}"
            if before is None:
                self._interval = FIRST
            elif now < self._next:
                return None
            self._next = now + self._interval
            self._interval = min(2 * self._interval, LONGEST)
            return f"{outage.said(now)}, and nothing is lost"
