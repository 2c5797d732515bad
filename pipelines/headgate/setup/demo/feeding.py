"""A producer beside the running pipeline: it delivers slices of bids to the source. Into a landing
folder it writes as a producer must: atomically, by rename."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from headgate.setup.demo.generator import Slice, bids

Deliver = Callable[[int, Slice], None]
"""Takes the number of a slice, and the slice."""


def into_folder(folder: Path) -> Deliver:
    """A function that writes each slice as a file, with ``now`` of the slice as modification
    time."""

    def deliver(number: int, part: Slice) -> None:
        write_slice(folder, number, part.lines, modified=part.now)

    return deliver


def write_slice(
    folder: Path, sequence: int, lines: Sequence[bytes], modified: datetime | None = None
) -> Path:
    """Write ``lines`` as one file named after ``sequence``, so that names sort in its order.

    The file is written under a dot-prefixed name, which readers ignore, and renamed into place.
    ``modified`` becomes its modification time before the rename. Raises FileExistsError rather than
    replace a file that may have been read.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{sequence:010d}.json"
    if path.exists():
        raise FileExistsError(path)
    draft = folder / f".{path.name}"
    draft.write_bytes(b"\n".join(lines) + b"\n" if lines else b"")
    if modified is not None:
        os.utime(draft, (modified.timestamp(), modified.timestamp()))
    return draft.rename(path)


def next_sequence(folder: Path) -> int:
    """One more than the highest number of the files in ``folder``; 0 if there are none."""
    taken = [int(path.stem) for path in folder.glob("*.json") if path.stem.isdigit()]
    return max(taken, default=-1) + 1


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
