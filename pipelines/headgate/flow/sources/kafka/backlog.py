"""The backlog of a Kafka pipeline: unread records, the age of the oldest, and the watermark of each
partition.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping

from headgate.flow.sources.kafka.ranges import Offsets, unread
from headgate.flow.sources.kafka.topics import TopicListing
from headgate.lake.control.driver_reports import Backlog, PartitionBacklog
from headgate.lake.tables.state import time_of

_EXACT_TO = 64
"""The error of an age is at most this fraction (1/64) of the oldest age; no age is too low. A
partition keeps this many moments, and as many again each time the age of the backlog doubles or
triples."""


class Arrivals:
    """``now`` is a monotonic clock in seconds. The age of a record that is present at the first
    observation is the time since that observation."""

    def __init__(self) -> None:
        self._moments: dict[int, deque[tuple[float, int]]] = {}

    def observe(self, now: float, position: Offsets, ends: Offsets) -> None:
        """Record where the logs end now, and forget moments before ``position``."""
        self._moments = {p: self._moments.get(p, deque()) for p in ends}
        for partition, moments in self._moments.items():
            while moments and moments[0][1] <= position.get(partition, 0):
                moments.popleft()
            _remember(moments, now, ends[partition])

    def waiting(self, now: float, partition: int, position: int) -> float:
        """Seconds since the log first went beyond ``position``; 0 if it does not."""
        moments = self._moments.get(partition, ())
        return next((now - at for at, end in moments if end > position), 0.0)


def _remember(moments: deque[tuple[float, int]], now: float, end: int) -> None:
    if moments and moments[-1][1] >= end:
        return
    at = now
    if moments and now - moments[-1][0] < (now - moments[0][0]) / _EXACT_TO:
        at, _ = moments.pop()
    moments.append((at, end))


def kafka_backlog(
    now: float,
    listing: TopicListing,
    position: Offsets,
    arrivals: Arrivals,
    clocks: Mapping[str, int],
    idle: Collection[int],
) -> Backlog:
    """``now`` is the monotonic clock of ``arrivals``. ``clocks`` are the partitions' watermarks in
    bronze's state."""
    behind = unread(position, listing.ends)
    parts = {
        str(partition): PartitionBacklog(
            behind.get(number, 0),
            round(arrivals.waiting(now, number, position[number]), 1),
            _text(clocks.get(str(number))),
            number in idle,
        )
        for number, partition in sorted(listing.partitions.items())
    }
    return Backlog("records", sum(behind.values()), partitions=parts)


def _text(clock: int | None) -> str | None:
    return None if clock is None else time_of(clock).isoformat(timespec="microseconds")
