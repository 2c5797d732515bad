"""How long the oldest unread record has been there, told from how the ends of the logs moved."""

from __future__ import annotations

from collections import deque

from headgate.sources.kafka.ranges import Offsets

_MOST = 512  # remembered moments of a partition; beyond, every second one is forgotten


class Arrivals:
    """``now`` is a monotonic clock in seconds. Nothing is known of the time before the first
    look, so what was there already counts from then on."""

    def __init__(self) -> None:
        self._moments: dict[int, deque[tuple[float, int]]] = {}

    def observe(self, now: float, position: Offsets, ends: Offsets) -> None:
        """Take in where the logs end now, and forget what was read."""
        self._moments = {p: self._moments.get(p, deque()) for p in ends}
        for partition, moments in self._moments.items():
            while moments and moments[0][1] <= position.get(partition, 0):
                moments.popleft()
            if not moments or moments[-1][1] < ends[partition]:
                moments.append((now, ends[partition]))
            if len(moments) > _MOST:
                self._moments[partition] = deque(list(moments)[::2])

    def waiting(self, now: float, partition: int, position: int) -> float:
        """Seconds since the log first went beyond ``position``; 0 where it does not."""
        moments = self._moments.get(partition, ())
        return next((now - at for at, end in moments if end > position), 0.0)
