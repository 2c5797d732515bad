"""Rows in Markdown: whatever events have in them, it is shown as it is written."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from headgate.airflow.questions import LONGEST, code, table, value
from headgate.lake.tables.row_changes import RowChange, RowChanges

TEXTS = (
    "a",
    "<img src=x onerror=alert(1)>|x",
    "a|b||",
    "`x`` <b>",
    "[click](http://evil.example)",
    "http://evil.example ann@evil.example",
    "{{ conn.db.password }} {% raw %}",
    "&lt;b&gt; **bold** ~~no~~ # h",
    "\\\\|",
    " spaces ",
    "ends with \\",
)


def rendered(text: str) -> list[list[str]]:
    """The texts of the cells of a table, by its lines. Fails if anything in it has an effect."""
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    assert {token.type for token in tokens if token.nesting == 0} == {"inline"}
    lines: list[list[str]] = []
    for token in tokens:
        if token.type == "tr_open":
            lines.append([])
        elif token.type == "inline":
            kinds = {each.type for each in token.children or ()}
            assert kinds <= {"text", "code_inline", "em_open", "em_close"}, token.content
            lines[-1].append("".join(each.content for each in token.children or ()))
    return lines


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_is_shown_as_it_is_written(text: str) -> None:
    row = {"at": "2026-03-01 12:00:00", "site": text, "name": text}
    found = RowChanges(("at",), ("site",), ("name",), (RowChange(None, row, (text,)),), 1)
    _, line = rendered(table(found, "Held version"))
    assert line[:2] == ["2026-03-01 12:00:00", text]
    assert line[2:] == ["new", "all", "no row", f"name {text}", text]


def test_a_backslash_before_a_bar_does_not_end_a_cell() -> None:
    """GitHub's tables and Airflow's read an odd number of backslashes before a bar otherwise."""
    assert value("a\\|b") == "`a\\`<!-- -->`\\|b`"
    assert value("a\\\\|b") == "`a\\\\\\|b`"


def test_null_nothing_and_text_are_told_apart() -> None:
    assert (value(None), value("null"), value("")) == ("*null*", "`null`", "*empty*")
    assert (value("-1.5E10"), value("2026-03-01 12:00:00")) == ("-1.5E10", "2026-03-01 12:00:00")


def test_a_long_text_is_cut_and_control_characters_are_escaped() -> None:
    assert value("x" * 10_000) == f"`{'x' * LONGEST}` … (10,000 characters)"
    assert code("x" * 10_000) == f"`{'x' * 10_000}`"
    assert len(value("\\|" * 10_000)) < 20 * LONGEST
    assert value("a\nb\x1b[1m\u202e") == "`a\\nb\\x1b[1m\\u202e`"
