"""The payload of publications."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headgate.tables.state import Payload


@dataclass(frozen=True)
class PublicationPayload(Payload):
    """``version`` is the version of its table's log up to which rows were sent."""

    kind: ClassVar[str] = "publication"

    version: int = 0


MEMBER = PublicationPayload()
