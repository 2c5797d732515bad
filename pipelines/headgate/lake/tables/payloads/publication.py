"""The payload of publications."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headgate.lake.tables.state import Payload


@dataclass(frozen=True)
class PublicationPayload(Payload):
    """``version`` is the version of its table's log up to which rows were sent. ``event`` is the
    name of the last event that was sent, if the publication sends events."""

    kind: ClassVar[str] = "publication"

    version: int = 0
    event: str = ""


MEMBER = PublicationPayload()
