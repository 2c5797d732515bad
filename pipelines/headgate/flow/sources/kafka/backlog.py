"""The backlog of a Kafka pipeline: unread records and the watermark of each partition."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from headgate.flow.sources.kafka.arrivals import Arrivals
from headgate.flow.sources.kafka.listing import TopicListing
from headgate.flow.sources.kafka.ranges import Offsets, unread
from headgate.lake.control.backlog import Backlog, PartitionBacklog
from headgate.lake.tables.state import time_of


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
