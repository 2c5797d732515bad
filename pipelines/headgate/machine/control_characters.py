"""Escapes of characters that a terminal obeys, and of those that a person cannot see. Names of
files and values of events may have them."""

from __future__ import annotations

_OBEYED = (*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
ESCAPES = {c: f"\\x{c:02x}" if c < 256 else f"\\u{c:04x}" for c in _OBEYED if chr(c) not in "\n\t"}
"""Of control characters, and of those that reverse the order of a line, for ``str.translate``."""
ON_ONE_LINE = ESCAPES | {ord("\n"): "\\n", ord("\t"): "\\t"}
"""Also of line feeds and tabs."""
