"""Names in messages."""

from __future__ import annotations

from collections.abc import Sequence


def some_of(names: Sequence[object], most: int = 8) -> str:
    """The names, or the first ones and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more
