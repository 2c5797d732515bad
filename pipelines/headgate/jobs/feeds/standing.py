"""How far a Kafka pipeline has read each partition, and how far its events have come."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC, datetime, timedelta

from headgate.sources.kafka.arrivals import Arrivals
from headgate.sources.kafka.listing import Listing
from headgate.sources.kafka.ranges import Offsets, unread
from headgate.storage.backlog import Backlog, PartitionBacklog

_EPOCH = datetime.fromtimestamp(0, UTC)


def standing(
    now: float,
    listing: Listing,
    position: Offsets,
    arrivals: Arrivals,
    clocks: Mapping[str, int],
    idle: Collection[int],
) -> Backlog:
    """``now`` is the monotonic clock of ``arrivals``; ``clocks`` are those of bronze's state."""
    behind = unread(position, listing.ends)
    parts = {
        str(partition): PartitionBacklog(
            behind.get(number, 0),
            round(arrivals.waiting(now, number, position[number]), 1),
            _time(clocks.get(str(number))),
            number in idle,
        )
        for number, partition in sorted(listing.partitions.items())
    }
    return Backlog("records", sum(behind.values()), partitions=parts)


def _time(micros: int | None) -> str | None:
    if micros is None:
        return None
    return (_EPOCH + timedelta(microseconds=micros)).isoformat(timespec="microseconds")
