"""A producer beside the running pipeline: it delivers slices of bids to the source."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from headgate.setup.demo.generator import Slice, bids
from headgate.setup.demo.landing import Deliver

SPAN = timedelta(minutes=10)
"""The range of event time of the demo's bids, whatever their number. It ends now."""
FIRST = 2_000  # events: few, so that gold gets its first row early
BATCHES = 8  # of about equal size after that, so that gold fills visibly
_GRAIN = 500


class Feeder(threading.Thread):
    """Stays one slice ahead of the pipeline, which reports its progress to :meth:`ingested`. If a
    slice cannot be delivered, ``failure`` has the reason, and ``on_failure`` is called.
    ``delivered`` has the number of bids and the time of each slice."""

    def __init__(
        self,
        deliver: Deliver,
        events: int,
        seed: int,
        on_failure: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(name="feeder", daemon=True)
        self.events = events
        self.failure: Exception | None = None
        self.delivered: list[tuple[int, datetime]] = []
        self._deliver = deliver
        self._on_failure = on_failure
        self._slices = slices(events, seed, datetime.now(UTC) - SPAN)
        self._read = 0
        self._moved = threading.Condition()

    def run(self) -> None:
        try:
            self._feed()
        except Exception as error:
            self.failure = error
            self._on_failure()

    def _feed(self) -> None:
        for number, part in enumerate(self._slices):
            # The first slice is small and alone, so that gold gets its first row early.
            needed = sum(size for size, _ in self.delivered[: max(1, number - 1)])
            with self._moved:
                self._moved.wait_for(lambda read=needed: self._read >= read)  # type: ignore[misc]
            self._deliver(number, part)
            self.delivered.append((len(part.lines), part.now))

    def ingested(self, read: int) -> bool:
        """Report how many events the pipeline has read in all; True if these are all events."""
        with self._moved:
            self._read = read
            self._moved.notify_all()
        return read >= self.events


def slices(events: int, seed: int, start: datetime) -> Iterator[Slice]:
    """A small slice, then about ``BATCHES`` larger ones."""
    rate = max(events, 1) / SPAN.total_seconds()
    target, lines, now = FIRST, list[bytes](), start
    for grain in bids(events, seed, start, rate, slice_events=_GRAIN):
        lines += grain.lines
        now = grain.now
        if len(lines) >= target:
            yield Slice(lines, now)
            target, lines = max(FIRST, -(-(events - FIRST) // BATCHES)), []
    if lines:
        yield Slice(lines, now)
