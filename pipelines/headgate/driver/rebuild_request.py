"""The tables that a driver is asked to rebuild."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class RebuildRequest:
    """``tables`` are paths of tables to rebuild. ``changed`` adds all tables that were made from
    another declaration."""

    tables: Sequence[str] = ()
    changed: bool = False


NOTHING = RebuildRequest()
