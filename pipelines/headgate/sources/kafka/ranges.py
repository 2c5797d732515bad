"""How much of which partition a micro-batch takes: plain decisions over offsets.

Offsets are maps from a partition's number (``topics``) to where reading continues or a log ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

Offsets = Mapping[int, int]


def unread(position: Offsets, ends: Offsets) -> dict[int, int]:
    """Records behind ``position`` in each listed partition; those without any are left out.

    Offsets are counted: where transactions were aborted or a topic is compacted, it is fewer.
    """
    return {p: end - position[p] for p, end in ends.items() if end > position[p]}


def next_range(position: Offsets, ends: Offsets, limit: int) -> dict[int, int]:
    """Where the next batch ends: at most ``limit`` records, dealt out in proportion to what is
    unread, so that all partitions are through at about the same time; one each at least."""
    behind = unread(position, ends)
    total = sum(behind.values())
    reached = dict(position)
    for partition, records in behind.items():
        share = records if total <= limit else max(1, records * limit // total)
        reached[partition] = position[partition] + share
    return reached


def next_limit(
    limit: int, taken: int, took: timedelta, *, target: timedelta, lowest: int, highest: int
) -> int:
    """The next batch's limit, after one of ``taken`` records that ``took`` so long.

    Too slow: what would have fitted, but no less than half. Well below the target and full: half
    as much again. In between it stays, so that batches do not swing.
    """
    if took > target:
        fitting = int(taken * (target / took))
        return max(lowest, min(limit, max(fitting, limit // 2)))
    if took < target / 2 and taken >= limit:
        return min(highest, limit + limit // 2 + 1)
    return limit
