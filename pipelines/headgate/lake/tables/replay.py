"""Replays: corrected copies of records, which bronze ingests as batches of their own.

The copies of partition p are in partition ~p (-1 - p), numbered from 0 in the order in which they
arrived. They continue p's log: duplicates are found across both partitions. The header
``CORRECTS`` of a copy names the record that it corrects, and ``CORRECTS_TIME`` its event time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

CORRECTS = "headgate.corrects"
"""The header of a copy: partition and offset of the corrected record, as in ``0:4711``."""
CORRECTS_TIME = f"{CORRECTS}_time"
"""The header with the event time of the corrected record, in microseconds since 1970 UTC; empty if
the record is invalid, so that no table has rejected it."""


@dataclass(frozen=True)
class RecordPosition:
    """Where a record is in bronze."""

    partition: int
    offset: int

    @property
    def log(self) -> int:
        """The partition whose log this position belongs to."""
        return max(self.partition, ~self.partition)

    def __str__(self) -> str:
        return f"{self.partition}:{self.offset}"

    @staticmethod
    def parse(text: str) -> RecordPosition:
        """Raises ValueError."""
        partition, offset = map(int, text.split(":"))
        return RecordPosition(partition, offset)


def sql_of_log(partition: str) -> str:
    """``RecordPosition.log`` in SQL."""
    return f"greatest({partition}, -1 - {partition})"


def positions_table(positions: Iterable[RecordPosition]) -> pa.Table:
    """Positions as columns with bronze's names and types."""
    import pyarrow as pa

    pairs = [(each.partition, each.offset) for each in positions]
    partitions, offsets = zip(*pairs, strict=True) if pairs else ((), ())
    return pa.table(
        {"partition": pa.array(partitions, pa.int32()), "offset": pa.array(offsets, pa.int64())}
    )


def positions_of(rows: pa.Table, names: Sequence[str]) -> list[RecordPosition]:
    """The positions of some rows. ``names`` are the columns of the partition and the offset."""
    partitions, offsets = (rows.column(name).to_pylist() for name in names)
    return [RecordPosition(*each) for each in zip(partitions, offsets, strict=True)]


def corrected_record(headers: Iterable[Mapping[str, Any]] | None) -> RecordPosition | None:
    """The record that a copy corrects; None for a record of the source."""
    for header in headers or ():
        if header["key"] == CORRECTS:
            return RecordPosition.parse(bytes(header["value"]).decode())
    return None


def corrected_time(headers: Iterable[Mapping[str, Any]] | None) -> str | None:
    """The value of ``CORRECTS_TIME``; None if there is no such header."""
    found = (bytes(each["value"]) for each in headers or () if each["key"] == CORRECTS_TIME)
    return next((value.decode() for value in found), None)
