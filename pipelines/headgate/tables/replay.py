"""Replays: mended copies of records, which bronze takes in as batches of their own.

The copies of partition p are in partition ~p (-1 - p), numbered from 0 in the order in which they
came. They are a continuation of p's log: duplicates are found across both. The header ``MENDS`` of
a copy names the record that it mends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

MENDS = "headgate.mends"
"""The header of a copy: partition and offset of the mended record, as in ``0:4711``."""


@dataclass(frozen=True)
class Position:
    """Where a record is in bronze."""

    partition: int
    offset: int

    @property
    def is_copy(self) -> bool:
        return self.partition < 0

    @property
    def log(self) -> int:
        """The partition whose log this position belongs to."""
        return ~self.partition if self.is_copy else self.partition

    def __str__(self) -> str:
        return f"{self.partition}:{self.offset}"

    @staticmethod
    def parse(text: str) -> Position:
        """Raises ValueError."""
        partition, offset = map(int, text.split(":"))
        return Position(partition, offset)


@dataclass(frozen=True)
class Replay:
    """A replay that bronze has taken in as batch ``n``: ``rows`` copies. ``id`` is the request's.
    ``reason`` says who asked for it, and why."""

    id: str
    n: int
    rows: int
    reason: str


def mended_by(headers: Iterable[Mapping[str, Any]] | None) -> Position | None:
    """The record that a copy mends; None for a record of the source."""
    for header in headers or ():
        if header["key"] == MENDS:
            return Position.parse(bytes(header["value"]).decode())
    return None
