"""Detects idle partitions of a source, and idle sources. A watermark does not wait for them.

A partition is idle when no record of it arrived for ``after`` while others did, and all of it was
read. Time counts only while records arrive in some partition. A pause of more than a tenth of
``after`` restarts every timer, so no partition becomes idle in a night without data or an outage.
The same holds for the sources of an input log.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Generic, TypeVar

Partition = TypeVar("Partition", int, str)
PAUSE = 10
"""A longer pause between arrivals than this fraction of ``after`` restarts every timer."""


class Idling(Generic[Partition]):
    """``now`` is a monotonic clock in seconds, ``ends`` are the ends of the partitions' logs, or
    the numbers of records of the sources."""

    def __init__(self, after: timedelta) -> None:
        self._after = after.total_seconds()
        self._ends: dict[Partition, int] = {}
        self._silent: dict[Partition, float] = {}
        self._arrived: float | None = None

    def observe(self, now: float, ends: Mapping[Partition, int]) -> None:
        """Record how the logs have grown since the last call."""
        grown = {p for p, end in ends.items() if end > self._ends.get(p, end)}
        new = ends.keys() - self._ends.keys()
        self._ends = dict(ends)
        self._silent = {p: self._silent.get(p, 0.0) for p in ends}
        if not grown:
            return
        passed = None if self._arrived is None else now - self._arrived
        self._arrived = now
        flows = passed is not None and passed <= self._after / PAUSE
        for partition in ends:
            if partition in grown or partition in new or not flows or passed is None:
                self._silent[partition] = 0.0
            else:
                self._silent[partition] += passed

    def idle(self, position: Mapping[Partition, int]) -> frozenset[Partition]:
        """The idle partitions, if everything before ``position`` was read."""
        return frozenset(
            partition
            for partition, silent in self._silent.items()
            if silent >= self._after and position.get(partition, 0) >= self._ends[partition]
        )


def waited_for(listed: Mapping[int, object], idle: frozenset[int]) -> frozenset[int]:
    """The partitions that the watermark waits for."""
    return frozenset(listed) - idle
