"""What an examination finds, and why a repair is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headgate import exit_codes
from headgate.errors import HeadgateError

Kind = Literal["document", "log", "checkpoint", "file", "position", "sequence"]


@dataclass(frozen=True)
class Damage:
    """Something whose content is not what was written. ``place`` is a path under the pipeline's
    folder; ``harmless`` says that nothing needs it any more."""

    place: str
    what: str
    kind: Kind
    harmless: bool = False

    def __str__(self) -> str:
        return f"{self.place}: {self.what}"


class CannotRepairError(HeadgateError, code=exit_codes.LOG_GAP):
    """Something is lost that cannot be rebuilt from any table."""
