"""What values look like in the tables of verbs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

from headgate.cli.output import grid
from headgate.cli.rows import cells

AT = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)


def plain(*values: object) -> list[str]:
    return [cell.plain for cell in cells(*values)]


def test_values_as_cells() -> None:
    assert plain(1234567, "1234567", None, b"\xff", 0) == ["1,234,567", "1234567", "", "\\xff", "0"]
    there = AT.astimezone(timezone(timedelta(hours=5)))
    assert plain(AT, there) == ["2026-01-02 03:04:05Z"] * 2


def test_markup_and_line_feeds_are_not_interpreted() -> None:
    assert plain("[red]a[/]", "a\nb\x1b") == ["[red]a[/]", "a\\nb\\x1b"]


def test_rows_of_a_grid() -> None:
    table = grid("", "table", "rows:", rows=[("a", 1000), ("[b]", None)])
    assert [column.header for column in table.columns] == ["table", "rows"]
    assert [column.justify for column in table.columns] == ["left", "right"]
    found = [[getattr(cell, "plain", None) for cell in column.cells] for column in table.columns]
    assert found == [["a", "[b]"], ["1,000", ""]]
