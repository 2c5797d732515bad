"""Decides which range of each partition a micro-batch reads.

Offsets map a partition's number (``topics``) to a position or to the end of a log.
"""

from __future__ import annotations

from collections.abc import Mapping

Offsets = Mapping[int, int]


def unread(position: Offsets, ends: Offsets) -> dict[int, int]:
    """Records after ``position`` in each listed partition; partitions without any are omitted.

    Offsets are counted. After aborted transactions or compaction there are fewer records.
    """
    return {p: end - position[p] for p, end in ends.items() if end > position[p]}


def next_range(position: Offsets, ends: Offsets, limit: int) -> dict[int, int]:
    """Where the next batch ends. It has at most ``limit`` records, in proportion to the unread
    records, so that all partitions finish at about the same time; at least one per partition."""
    behind = unread(position, ends)
    total = sum(behind.values())
    reached = dict(position)
    for partition, records in behind.items():
        share = records if total <= limit else max(1, records * limit // total)
        reached[partition] = position[partition] + share
    return reached
