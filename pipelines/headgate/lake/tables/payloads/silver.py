"""The payload of silver tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headgate.lake.tables.state import Payload

OUTCOMES = ("silver", "filtered", "quarantined", "duplicate", "rejected")
"""The outcomes of rows of bronze, which a silver table counts in its totals: each row has one. The
last one is counted only with a suite."""


@dataclass(frozen=True)
class SilverPayload(Payload):
    """``watermark`` is that of the source at the table's batch id, in microseconds since 1970 UTC.
    None if it is not known. ``suite`` is the digest of the rules that decided the last batch, empty
    without a suite."""

    kind: ClassVar[str] = "silver"

    watermark: int | None = None
    suite: str = ""

    def as_of(self, watermark: int | None) -> SilverPayload:
        return SilverPayload(watermark)


MEMBER = SilverPayload()
