"""The payload of gold tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headgate.tables.state import Payload


@dataclass(frozen=True)
class GoldPayload(Payload):
    """``watermark`` is that of the source at the table's batch id. ``closed_through`` is the window
    end up to which an operation has closed the table. Both are microseconds since 1970 UTC, or
    None if they are not known."""

    kind: ClassVar[str] = "gold"

    watermark: int | None = None
    closed_through: int | None = None


MEMBER = GoldPayload()
