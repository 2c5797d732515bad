"""Sources and their batches, and the decisions among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

Position = Mapping[str, int]
"""The number of batches of each source, by its name."""


class Arrived(NamedTuple):
    """A record as it arrives."""

    partition: int
    time: int
    key: str


class Row(NamedTuple):
    """A row of silver. ``clock`` is its watermark at arrival: the greatest time before it in its
    partition, but at least the watermark of its source. None if there is none."""

    id: str
    source: str
    time: int
    key: str
    clock: int | None


@dataclass(frozen=True)
class Decision:
    """``idle`` are the sources that are idle from ``position`` on. With ``replays``, the late rows
    at that position are included; with ``drains``, all results at that position become final."""

    position: Position
    idle: frozenset[str]
    replays: bool = False
    drains: bool = False


@dataclass(frozen=True)
class SourceLog:
    """The batches of a source, and its watermark after each. The watermark is the smallest of the
    greatest times of its partitions, and never falls."""

    name: str
    partitions: int = 1
    batches: tuple[tuple[Row, ...], ...] = ()
    watermarks: tuple[int | None, ...] = (None,)
    clocks: Mapping[int, int] = field(default_factory=dict)

    def after(self, batch: Sequence[Arrived]) -> SourceLog:
        clocks, before = dict(self.clocks), self.watermarks[-1]
        rows = []
        for place, each in enumerate(batch):
            known = [c for c in (clocks.get(each.partition), before) if c is not None]
            id_ = f"{self.name}{len(self.batches)}.{place}"
            rows.append(Row(id_, self.name, each.time, each.key, max(known, default=None)))
            clocks[each.partition] = max(each.time, clocks.get(each.partition, each.time))
        lowest = min(clocks.values()) if len(clocks) == self.partitions else None
        known = [c for c in (before, lowest) if c is not None]
        watermarks = (*self.watermarks, max(known, default=None))
        return replace(
            self, batches=(*self.batches, tuple(rows)), watermarks=watermarks, clocks=clocks
        )


@dataclass(frozen=True)
class Logs:
    """All that has happened: the batches of every source, and the decisions in order."""

    sources: Mapping[str, SourceLog]
    decisions: tuple[Decision, ...] = ()

    @property
    def position(self) -> dict[str, int]:
        return {name: len(log.batches) for name, log in self.sources.items()}

    @property
    def idle(self) -> frozenset[str]:
        return self.decisions[-1].idle if self.decisions else frozenset()

    def rows(self, source: str, after: int, upto: int) -> tuple[Row, ...]:
        return tuple(row for batch in self.sources[source].batches[after:upto] for row in batch)

    def arrives(self, source: str, batch: Sequence[Arrived]) -> Logs:
        """A batch. A source that was idle is so no longer, which is decided before its batch."""
        logs = self.decides(idle=self.idle - {source}) if source in self.idle else self
        return replace(logs, sources={**logs.sources, source: logs.sources[source].after(batch)})

    def decides(
        self, *, idle: frozenset[str] | None = None, replays: bool = False, drains: bool = False
    ) -> Logs:
        waits = self.idle if idle is None else idle
        decision = Decision(self.position, waits, replays, drains)
        return replace(self, decisions=(*self.decisions, decision))
