"""The payload of tables that carry only their position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from headgate.lake.tables.state import Payload


@dataclass(frozen=True)
class NoPayload(Payload):
    kind: ClassVar[str] = "none"


MEMBER = NoPayload()
