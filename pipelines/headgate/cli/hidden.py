"""Removes secrets, and characters that a terminal obeys, from texts that are shown. Renders their
commands as they are typed here."""

from __future__ import annotations

from collections.abc import Iterable

from headgate.commands import rendered
from headgate.declaration.secrets import without
from headgate.machine.control_characters import ESCAPES

_hidden: frozenset[str] = frozenset()


def hide(secrets: Iterable[str]) -> None:
    """Remove these, too, from all that :func:`shown` returns: an error of Spark or of a client may
    quote its settings."""
    global _hidden
    _hidden |= frozenset(secrets)


def shown(text: str) -> str:
    """A text without secrets and control characters, with its commands as they are typed here."""
    return without(_hidden, rendered(text)).translate(ESCAPES)
