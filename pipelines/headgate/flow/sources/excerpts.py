"""Excerpts of input in messages: the beginning of a text, the first ones of many names."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SHOWN = 40  # characters
_CONTROL = re.compile("[\x00-\x1f\x7f\x85\u2028\u2029\ufeff]")
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def beginning(text: str, most: int = _SHOWN) -> str:
    """The beginning of a text, in quotes. Control characters are escaped, other quotes are not:
    this is for people."""
    shown = _CONTROL.sub(_escaped, text[:most]) + ("..." if len(text) > most else "")
    # Surrogates stand for bytes that are not UTF-8.
    return f"'{shown.encode('utf-8', 'replace').decode()}'"


def not_utf8(error: UnicodeDecodeError) -> str:
    """Names the first byte that is not UTF-8, and what is before it."""
    byte = error.object[error.start]
    before = error.object[max(error.start - _SHOWN, 0) : error.start].decode("utf-8", "replace")
    where = f"after {beginning(before)}" if before else "at the beginning"
    return f"not UTF-8: the byte 0x{byte:02X} {where}"


def _escaped(found: re.Match[str]) -> str:
    return _ESCAPES.get(found[0], f"\\u{ord(found[0]):04x}")


def some_of(names: Sequence[object], most: int = 8) -> str:
    """The names, or the first ones and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more
