"""Rows of gold that a person decides about, on the screen."""

from __future__ import annotations

from rich.table import Table

from headgate.cli.output import grid
from headgate.cli.rows import as_text, cells
from headgate.tables.row_changes import Line, RowChanges, Values


def rows_shown(found: RowChanges, after: str) -> Table:
    """What readers see, and what is called ``after``."""
    has_rules = any(row.rules for row in found.rows)
    headers = (*found.window, *found.by, "row", "column", "readers see", after)
    shown = grid("", *headers, *(["breaks"] if has_rules else []))
    for line in found.lines:
        first = (*line.window, *line.key.values()) if line.is_first else _nothing(found)
        row = line.row.change if line.is_first else ""
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
