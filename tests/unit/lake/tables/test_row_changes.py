"""Rows that a person decides about: what is shown of them, and how many."""

from __future__ import annotations

import json

from headgate.lake.storage.documents import decoded, encoded
from headgate.lake.tables.row_changes import MOST, MOST_LINES, RowChange, RowChanges, Values

KEY: Values = {"start": "12:00", "site": "a"}
OLD: Values = {**KEY, "events": "1", "total": None, "mean": "7"}
NEW: Values = {**KEY, "events": "2", "total": "3", "mean": "7"}


def changes(*rows: RowChange, total: int | None = None) -> RowChanges:
    return RowChanges(("start",), ("site",), ("events", "total", "mean"), rows, total)


def test_each_column_that_differs_has_a_line() -> None:
    first, second = changes(RowChange(OLD, NEW, ("sane",))).lines
    assert (first.window, first.key, first.is_first) == (("12:00",), {"site": "a"}, True)
    assert (first.column, first.before, first.after) == ("events", {"events": "1"}, {"events": "2"})
    assert (second.column, second.before, second.is_first) == ("total", {"total": None}, False)


def test_a_row_that_is_new_or_gone_or_seen_has_one_line() -> None:
    values = {name: NEW[name] for name in ("events", "total", "mean")}
    for before, after, change in ((None, NEW, "new"), (NEW, None, "gone"), (NEW, NEW, "seen")):
        (line,) = changes(RowChange(before, after)).lines
        assert (line.row.change, line.column) == (change, None)
        assert line.before == (values if before else None)
        assert line.after == (values if after else None)


def test_the_first_rows_are_those_with_few_lines_altogether() -> None:
    new, changed = RowChange(None, NEW), RowChange(OLD, NEW)
    assert len(changes(*[new] * 99, total=99).first().rows) == MOST
    wide = RowChanges((), (), tuple(map(str, range(40))), (), 2)
    row = RowChange({str(n): "a" for n in range(40)}, {str(n): "b" for n in range(40)})
    found = RowChanges(wide.window, wide.by, wide.columns, (row, row), 2).first()
    assert (len(found.rows), found.is_whole, found.count) == (1, False, "the first 1 of 2 rows")
    huge = tuple(map(str, range(MOST_LINES + 1)))
    row = RowChange(dict.fromkeys(huge, "a"), dict.fromkeys(huge, "b"))
    assert len(RowChanges((), (), huge, (row, row), 2).first().rows) == 1, "never none"
    assert changes(changed, total=1).count == "1 row"
    assert changes(changed, total=None).count == "the first 1 of many rows"


def test_a_document_is_the_rows_and_says_what_has_changed() -> None:
    found = changes(RowChange(OLD, NEW, ("sane",)), RowChange(None, NEW), total=5)
    assert decoded(json.loads(json.dumps(encoded(found))), RowChanges) == found
    document = found.document()
    assert [row["change"] for row in document["rows"]] == ["changed", "new"]
    assert (document["total"], document["rows"][0]["rules"]) == (5, ["sane"])
