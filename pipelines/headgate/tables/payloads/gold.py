"""The payload of gold tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from headgate.tables.state import Payload


@dataclass(frozen=True)
class GoldPayload(Payload):
    """``watermark`` is that of the source at the table's batch id. ``closed_through`` is the window
    end up to which an operation has closed the table. Both are microseconds since 1970 UTC, or
    None if they are not known. ``drains`` has the window end up to which each drain has closed the
    table, by the operation's number; what an older version has closed is under 0. ``gate`` is what
    the last validation of the table's suite said: ``suite`` is its digest, ``at`` its time, ``n``
    and ``operation`` what the version has absorbed, ``broken`` the rules that were not met,
    ``released`` who has let the version pass, when and why. None if there was none."""

    kind: ClassVar[str] = "gold"

    watermark: int | None = None
    closed_through: int | None = None
    gate: Mapping[str, Any] | None = None
    drains: Mapping[str, int] = field(default_factory=dict)

    def is_validated(self, n: int, operation: int) -> bool:
        """Whether the version at a batch id and an operation was validated itself. Later versions
        repeat what was said of it."""
        if self.gate is None:
            return False
        # An older version of Headgate has not written them.
        said = self.gate.get("n", n), self.gate.get("operation", operation)
        return said == (n, operation)

    def final_through(self, lateness: int) -> int | None:
        """The end up to which results are final, with the allowed lateness in microseconds; None if
        none is."""
        threshold = None if self.watermark is None else self.watermark - lateness
        ends = [end for end in (threshold, self.closed_through) if end is not None]
        return max(ends, default=None)


MEMBER = GoldPayload()
