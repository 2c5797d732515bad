"""Rows of gold as a table in Markdown, for Airflow's forms.

Values come from events. In a code span, neither Markdown nor HTML in them has any effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from headgate.lake.tables.row_changes import Line, RowChanges, Values
from headgate.machine.control_characters import ON_ONE_LINE

LONGEST = 200
"""The number of characters of a value that are shown."""
MOST_COLUMNS = 30
"""The number of columns of a row that are shown in one line."""
_PLAIN = re.compile(r"[-+]?[\d.,:eE+-]+(?: [\d.:+-]+)?")
"""Numbers and times: they need no code span."""
_BEFORE_A_BAR = re.compile(r"(?<!\\)(?:\\\\)*\\(?=\|)")
"""The end of an odd number of backslashes before a vertical bar. In a cell, a bar needs a backslash
of its own, and both would be read as an escaped backslash. So the code span ends there, and another
one follows after a comment, which is not shown."""


def table(found: RowChanges, after: str) -> str:
    """What readers see, and what is called ``after``."""
    has_rules = any(row.rules for row in found.rows)
    heads = [*(["Window"] if found.window else []), *found.by]
    heads += ["Row", "Column", "Readers see", after, *(["Breaks"] if has_rules else [])]
    lines = [[_cell(head) if head in found.by else head for head in heads], ["---"] * len(heads)]
    lines += [[*_cells(found, line, has_rules=has_rules)] for line in found.lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cells(found: RowChanges, line: Line, *, has_rules: bool) -> Iterator[str]:
    first = [" to ".join(map(value, line.window))] if found.window else []
    first += [value(each) for each in line.key.values()]
    first += [line.row.change]
    yield from first if line.is_first else [""] * len(first)
    yield "*all*" if line.column is None else _cell(line.column)
    yield "*the same*" if line.row.change == "seen" else _side(line, line.before)
    yield _side(line, line.after)
    if has_rules:
        yield ", ".join(map(_cell, line.row.rules)) if line.is_first else ""


def _side(line: Line, values: Values | None) -> str:
    if values is None:
        return "*no row*"
    if line.column is not None:
        return value(values[line.column])
    # A row has many columns. Most of those that are null say nothing.
    named = [f"{_cell(name)} {value(each)}" for name, each in values.items() if each is not None]
    more = [f"and {len(named) - MOST_COLUMNS:,} more"] if len(named) > MOST_COLUMNS else []
    return ", ".join([*named[:MOST_COLUMNS], *more]) or "*null*"


def value(text: str | None) -> str:
    """A value of a row, in a cell."""
    if text is None:
        return "*null*"
    return text if _PLAIN.fullmatch(text) else _cell(text)


def _cell(text: str) -> str:
    """As ``code``, in a cell: a vertical bar would end it. A long text is cut."""
    shown = text[:LONGEST]
    ends = [0, *(found.end() for found in _BEFORE_A_BAR.finditer(shown)), len(shown)]
    parts = (code(shown[begin:end]) for begin, end in pairwise(ends))
    more = f" … ({len(text):,} characters)" if len(text) > LONGEST else ""
    return "<!-- -->".join(part.replace("|", "\\|") for part in parts) + more


def code(text: str) -> str:
    """A text of any content, without an effect on what surrounds it. The fence of its code span is
    longer than any in the text, and one space at both ends is no part of it."""
    if not text:
        return "*empty*"
    shown = text.translate(ON_ONE_LINE)
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    pad = " " if "`" in shown or shown != shown.strip(" ") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"
