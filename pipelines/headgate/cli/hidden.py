"""Removes secrets, and characters that a terminal obeys, from texts that are shown. Renders their
commands as they are typed here."""

from __future__ import annotations

from collections.abc import Iterable

from headgate.commands import rendered
from headgate.declaration.secrets import without

_OBEYED = (*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
CONTROL = {c: f"\\x{c:02x}" if c < 256 else f"\\u{c:04x}" for c in _OBEYED if chr(c) not in "\n\t"}
"""Escapes of control characters, and of those that reverse the order of a line, for
``str.translate``. Names of files and values may have them."""

_hidden: frozenset[str] = frozenset()


def hide(secrets: Iterable[str]) -> None:
    """Remove these, too, from all that :func:`shown` returns: an error of Spark or of a client may
    quote its settings."""
    global _hidden
    _hidden |= frozenset(secrets)


def shown(text: str) -> str:
    """A text without secrets and control characters, with its commands as they are typed here."""
    return without(_hidden, rendered(text)).translate(CONTROL)
