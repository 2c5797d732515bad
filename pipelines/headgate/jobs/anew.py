"""What a driver is asked to build anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Anew:
    """Which tables are emptied before anything runs: ``tables`` by their paths, and with
    ``changed`` those that were made from another declaration."""

    tables: Sequence[str] = ()
    changed: bool = False


NOTHING = Anew()
