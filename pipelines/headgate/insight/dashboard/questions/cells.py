"""Values of rows as short, harmless text.

A value comes from an event, so it may be anything: markup, megabytes, or characters that change the
direction of a line. The page shows all of it as text; here it is cut, and invisible characters are
replaced by escapes.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from headgate.insight.querying.sandbox import quoted

MOST = 300  # characters of a value that are shown
_MOST_EXACT = 1_000  # bytes of a filter's value, which is part of an address
_TEXTS = ("VARCHAR", "BLOB")
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
"""Categories of characters that have no glyph or move others: controls, marks of direction, line
separators, characters that are not assigned."""


def text_of(column: str, type_: str, most: int = MOST) -> str:
    """An expression with the text of a column, cut to ``most`` characters and followed by its whole
    length, so that Python never loads a long value. ``type_`` is the type in DuckDB."""
    name = quoted(column)
    if type_.endswith("]") or type_.startswith(("STRUCT", "MAP")):
        name = f"CAST(to_json({name}) AS VARCHAR)"
    elif type_.startswith("TIMESTAMP WITH"):
        return f"CAST({name} AT TIME ZONE 'UTC' AS VARCHAR) || 'Z'"
    elif type_ == "BLOB":
        # Bytes that are not valid UTF-8 keep their escapes.
        name = f"coalesce(TRY(decode({name})), CAST({name} AS VARCHAR))"
    text = f"CAST({name} AS VARCHAR)"
    length = f"octet_length({quoted(column)})" if type_ == "BLOB" else f"length({text})"
    unit = "bytes" if type_ == "BLOB" else "characters"
    return (
        f"CASE WHEN {length} > {most} THEN left({text}, {most}) || '… (' || "
        f"format('{{:,}}', {length}) || ' {unit})' ELSE {text} END"
    )


def exact_of(column: str) -> str:
    """An expression with the whole text of a column, by which a filter finds the value again; null
    if it is too long for that."""
    text = f"CAST({quoted(column)} AS VARCHAR)"
    return f"CASE WHEN strlen({text}) <= {_MOST_EXACT} THEN {text} END"


def visible(text: str | None) -> str | None:
    """The text with every character that has no glyph, or that moves others, as its escape."""
    if text is None or (text.isascii() and text.isprintable()):
        return text
    return "".join(c if unicodedata.category(c) not in _HIDDEN else _escape(c) for c in text)


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def cells(row: Sequence[object]) -> list[str | None]:
    return [visible(None if value is None else str(value)) for value in row]


def is_number(type_: str) -> bool:
    if type_.endswith("]"):
        return False
    return type_.startswith(("DECIMAL", "DOUBLE", "FLOAT")) or type_.endswith(("INT", "INTEGER"))
