"""Checks declared start offsets."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.flow.sources.errors import SourceError
from headgate.flow.sources.kafka.listing import TopicListing
from headgate.flow.sources.kafka.ranges import Offsets


def check_offsets(
    start: Mapping[int, int], listing: TopicListing, first: Offsets, file: str
) -> None:
    """``start`` has offsets by the partitions of the only topic, ``first`` the first offsets by
    number. ``file`` is the declaration. Raises SourceError if a partition has no such offset."""
    there = {p.partition: p for p in listing.partitions.values()}
    for number, offset in sorted(start.items()):
        partition = there.get(number)
        if partition is None:
            raise _refused(f"{file}: start: no partition {number}; the topic has {len(there)}")
        low, high = first[partition.number], listing.ends[partition.number]
        if not low <= offset <= high:
            raise _refused(
                f"{file}: start: {partition} has no offset {offset:,}; it has {low:,} to {high:,}"
            )


def _refused(message: str) -> SourceError:
    return SourceError(message, remedy="change start, or say earliest, latest or a time")
