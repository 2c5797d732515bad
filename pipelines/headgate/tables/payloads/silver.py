"""The payload of silver tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from headgate.tables.state import Payload

OUTCOMES = ("silver", "filtered", "quarantined", "duplicate", "rejected")
"""The outcomes of rows of bronze, which a silver table counts in its totals: each row has one. The
last one is counted only with a suite."""


@dataclass(frozen=True)
class SilverPayload(Payload):
    """``watermark`` is that of the source at the table's batch id, in microseconds since 1970 UTC.
    None if it is not known. ``suite`` is the digest of the rules that decided the last batch, empty
    without a suite. ``watermarks`` are those of earlier batches at which an operation took place,
    by batch id: a rebuild of gold uses them if the commits of these batches are deleted."""

    kind: ClassVar[str] = "silver"

    watermark: int | None = None
    suite: str = ""
    watermarks: Mapping[str, int] = field(default_factory=dict)

    def as_of(self, n: int) -> SilverPayload:
        return SilverPayload(self.watermarks.get(str(n)))


MEMBER = SilverPayload()
