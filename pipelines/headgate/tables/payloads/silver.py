"""The payload of silver tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headgate.tables.state import Payload


@dataclass(frozen=True)
class SilverPayload(Payload):
    """``watermark`` is that of the source at the table's batch id, in microseconds since 1970 UTC.
    None if it is not known. ``suite`` is the digest of the rules that decided the last batch, empty
    without a suite."""

    kind: ClassVar[str] = "silver"

    watermark: int | None = None
    suite: str = ""


MEMBER = SilverPayload()
