"""The payload of silver tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headgate.lake.tables.state import Counts, Payload, SourceWatermarks

OF_ROWS = ("silver", "filtered", "rejected")
OF_RECORDS = ("quarantined", "duplicate")
OUTCOMES = (*OF_ROWS, *OF_RECORDS, "empty")
"""The outcomes of records, which a silver table counts in its totals: each record has one. In a
table that explodes an array, a record is in ``OF_RECORDS``, or ``empty``, or ``exploded``, and each
of the ``items`` of the last ones is in ``OF_ROWS``. ``rejected`` is counted only with a suite."""


def rows_in(counts: Counts) -> int:
    """The rows to which ``where`` and rules were applied: records, or their items."""
    return sum(counts.get(outcome, 0) for outcome in OF_ROWS)


def records_in(counts: Counts) -> int:
    """The records that a silver table has counted."""
    rest = sum(counts.get(outcome, 0) for outcome in (*OF_RECORDS, "empty"))
    return rest + counts.get("exploded", rows_in(counts))


@dataclass(frozen=True)
class SilverPayload(Payload):
    """``watermark`` and ``arrival_watermark`` are those of the source at the table's batch id, in
    microseconds since 1970 UTC. None if they are not known. ``suite`` is the digest of the rules
    that decided the last batch, empty without a suite."""

    kind: ClassVar[str] = "silver"

    watermark: int | None = None
    suite: str = ""
    arrival_watermark: int | None = None

    @property
    def watermarks(self) -> SourceWatermarks:
        return SourceWatermarks(self.watermark, self.arrival_watermark)

    def as_of(self, watermarks: SourceWatermarks) -> SilverPayload:
        return SilverPayload(watermarks.event, arrival_watermark=watermarks.arrival)


MEMBER = SilverPayload()
