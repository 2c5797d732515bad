"""Rows as text. Values come from events, so markup and escape sequences in them are never
interpreted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from headgate.cli.output import grid
from headgate.declaration.quantities import plural
from headgate.lake.tables.row_changes import Line, RowChanges, Values
from headgate.machine.control_characters import ESCAPES, ON_ONE_LINE

MOST = 1_000
"""Rows that a terminal shows; a pipe gets all of them."""

_DECIMALS = 6

Row = Sequence[Any]


def as_text(value: object) -> str:
    """A value as a person reads it. Bytes that are not valid UTF-8 become escapes. Arrays, maps and
    structs become JSON."""
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, datetime):
        return value.isoformat(sep=" ").replace("+00:00", "Z")
    if isinstance(value, Decimal):
        return f"{value:f}"  # never 0E-20
    if isinstance(value, list | dict):
        return json.dumps(value, default=as_text, ensure_ascii=False)
    return str(value)


def shown(value: object, *, one_line: bool = True) -> str:
    """:func:`as_text` with control characters as escapes; with ``one_line``, also line feeds and
    tabs. A decimal with more than ``_DECIMALS``, such as a quotient, is without zeros at its
    end."""
    text = as_text(value)
    if isinstance(value, Decimal) and len(text.partition(".")[2]) > _DECIMALS:
        return text.rstrip("0").rstrip(".")
    return text.translate(ON_ONE_LINE if one_line else ESCAPES)


def cells(*values: object) -> tuple[Text, ...]:
    """Values as cells of a table: integers with separators, times in UTC to the second, nothing for
    None. A number that is typed again must come as text."""
    return tuple(Text(_cell(value)) for value in values)


def _cell(value: object) -> str:
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%F %T}Z"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return "" if value is None else shown(value)


def table_of(title: str, columns: Sequence[str], rows: Sequence[Row]) -> Table:
    """A table with columns of numbers aligned to the right."""
    table = grid(title)
    for header, side in zip(columns, _sides(columns, rows), strict=True):
        table.add_column(Text(shown(header)), justify=side)
    for row in rows:
        table.add_row(*(Text(shown(value, one_line=False)) for value in row))
    return table


def print_rows(out: Console, columns: Sequence[str], rows: Sequence[Row]) -> None:
    """Print all rows, one a line, into a file or a pipe; on a terminal, only the first ``MOST``."""
    if out.is_terminal:
        out.print(table_of("", columns, rows[:MOST]))
    else:
        for line in _lines(columns, rows):
            print(line, file=out.file)
    count = plural(len(rows), "row")
    if out.is_terminal and len(rows) > MOST:
        count = f"the first {MOST:,} of {count}; for all of them write into a file, or add --json"
    out.print(count, style="dim")


def _lines(columns: Sequence[str], rows: Sequence[Row]) -> Iterator[str]:
    sides = _sides(columns, rows)
    lines = [[shown(value) for value in row] for row in (columns, *rows)]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        padded = (_pad(*cell) for cell in zip(line, widths, sides, strict=True))
        yield "  ".join(padded).rstrip()


def _pad(text: str, width: int, side: Literal["left", "right"]) -> str:
    space = " " * (width - cell_len(text))
    return space + text if side == "right" else text + space


def _sides(columns: Sequence[str], rows: Sequence[Row]) -> list[Literal["left", "right"]]:
    """Right for a column of numbers."""
    return ["right" if _numbers(row[i] for row in rows) else "left" for i in range(len(columns))]


def _numbers(values: Iterator[object]) -> bool:
    kinds = {type(value) for value in values if value is not None}
    return bool(kinds) and kinds <= {int, float, Decimal}


def rows_shown(found: RowChanges, after: str, names: Mapping[str, str] = {}) -> Table:
    """What readers see, and what is called ``after``. ``names`` are other names of changes."""
    has_rules = any(row.rules for row in found.rows)
    headers = (*found.window, *found.by, "row", "column", "readers see", after)
    shown = grid("", *headers, *(["breaks"] if has_rules else []))
    for line in found.lines:
        first = (*line.window, *line.key.values()) if line.is_first else _nothing(found)
        row = names.get(line.row.change, line.row.change) if line.is_first else ""
        rules = [", ".join(line.row.rules) if line.is_first else ""] if has_rules else []
        sides = _side(line, line.before), _side(line, line.after)
        shown.add_row(*cells(*map(as_text, first), row, line.column or "all", *sides, *rules))
    return shown


def _nothing(found: RowChanges) -> tuple[str, ...]:
    return ("",) * len((*found.window, *found.by))


def _side(line: Line, values: Values | None) -> str:
    if values is None:
        return "-"
    if line.column is not None:
        return as_text(values[line.column])
    named = (f"{name}={each}" for name, each in values.items() if each is not None)
    return ", ".join(named) or as_text(None)
