"""How far a job is behind, as its status document records it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from headgate.declaration.quantities import plural, size_text

Unit = Literal["files", "records", "batches"]


@dataclass(frozen=True)
class PartitionBacklog:
    """``records`` is the number of unread records; the oldest of them has waited for ``seconds``,
    as far as this job has observed. ``clock`` is the partition's watermark (ISO 8601, UTC,
    microseconds; None if it has none yet). If the partition is ``idle``, the watermark of the
    source does not wait for it."""

    records: int
    seconds: float
    clock: str | None = None
    idle: bool = False


@dataclass(frozen=True)
class Backlog:
    """``count`` is the number of unread files, records or (below bronze) batches, ``size`` their
    bytes, None if it is not known. ``partitions`` are by name (topic/partition), empty if the
    source has none."""

    unit: Unit
    count: int = 0
    size: int | None = None
    partitions: Mapping[str, PartitionBacklog] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """How long the oldest unread record has waited."""
        return max((p.seconds for p in self.partitions.values()), default=0.0)

    @property
    def holding(self) -> str | None:
        """The partition that the watermark of the source waits for: the active partition with the
        smallest watermark, or one that has none yet."""
        waited_for = {name: p.clock or "" for name, p in self.partitions.items() if not p.idle}
        return min(waited_for, key=waited_for.__getitem__, default=None)

    @property
    def number(self) -> str:
        """The count with its unit, such as "1 file"."""
        return plural(
            self.count, {"files": "file", "records": "record", "batches": "batch"}[self.unit]
        )

    def __str__(self) -> str:
        if not self.count:
            return "none"
        size = "" if self.size is None else f" {size_text(self.size)}"
        age = f" {self.seconds:,.0f} s" if self.partitions else ""
        return f"{self.number}{size}{age}"
