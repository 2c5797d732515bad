"""How far a job is behind: the shape of status documents, for jobs and for those who look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Unit = Literal["files", "records", "batches"]


@dataclass(frozen=True)
class PartitionBacklog:
    """``records`` are unread; the oldest of them has been there for ``seconds``, as far as this
    job has seen it. ``clock`` is the partition's watermark (ISO 8601, UTC, microseconds; None: no
    record has told one); where it is ``idle``, the pipeline's does not wait for it."""

    records: int
    seconds: float
    clock: str | None = None
    idle: bool = False


@dataclass(frozen=True)
class Backlog:
    """``count`` files, records or (below bronze) batches; ``size`` in bytes where it is known.
    ``partitions`` by name (topic/partition), of a log that has them."""

    unit: Unit
    count: int = 0
    size: int | None = None
    partitions: Mapping[str, PartitionBacklog] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """How long the oldest unread record has been there."""
        return max((p.seconds for p in self.partitions.values()), default=0.0)

    @property
    def holding(self) -> str | None:
        """The partition that the pipeline's watermark waits for: the one that is furthest back,
        or that has no clock yet."""
        waited_for = {name: p.clock or "" for name, p in self.partitions.items() if not p.idle}
        return min(waited_for, key=waited_for.__getitem__, default=None)

    def __str__(self) -> str:
        if not self.count:
            return "none"
        size = "" if self.size is None else f" {self.size / 1_000_000:,.1f} MB"
        age = f" {self.seconds:,.0f} s" if self.partitions else ""
        unit = {"files": "file", "records": "record", "batches": "batch"}[self.unit]
        return f"{self.count:,} {unit if self.count == 1 else self.unit}{size}{age}"

    @staticmethod
    def from_document(content: Mapping[str, Any]) -> Backlog:
        parts = {name: PartitionBacklog(**p) for name, p in content["partitions"].items()}
        return Backlog(content["unit"], content["count"], content["size"], parts)
