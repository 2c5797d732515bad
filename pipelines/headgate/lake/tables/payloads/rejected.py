"""The payload of tables of rejected rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from headgate.lake.tables.state import Payload


@dataclass(frozen=True)
class RejectedPayload(Payload):
    """``suite`` has the rules that decided the last batch (``Suite.encode``). If a crash came
    before the commit of the silver table, the table repeats the batch with the same rules, even if
    they have changed since."""

    kind: ClassVar[str] = "rejected"

    suite: Mapping[str, Any] = field(default_factory=dict)


MEMBER = RejectedPayload()
