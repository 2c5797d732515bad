"""Messages about what fails, as one text."""

from __future__ import annotations

from collections.abc import Iterable


def joined(messages: Iterable[str | None]) -> str | None:
    """The messages that there are, in order; None if there is none."""
    return "; ".join(filter(None, messages)) or None
