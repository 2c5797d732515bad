"""What a driver is asked to rebuild."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class RebuildRequest:
    """Which tables are rebuilt: ``tables`` by their paths, and with ``changed`` those that were
    made from another declaration."""

    tables: Sequence[str] = ()
    changed: bool = False


NOTHING = RebuildRequest()
