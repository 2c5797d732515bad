"""The report of a backfill, and what is decided from it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

from headgate.history.backfill.report import (
    BackfillReport,
    ColumnDifference,
    PublishedBackfill,
    TableReport,
)
from headgate.lake.storage.documents import decoded
from headgate.lake.tables.row_changes import RowChange, RowChanges

EQUAL = TableReport("sales", 7, 4, 0, 0, 0, 2, 2, "4-ab", "4-ab")
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
REPORT = BackfillReport("20260301-120000-abcdef", "shop", NOON, NOON, None, "digest", (EQUAL,))
DIFFERING = replace(
    EQUAL,
    changed=1,
    backfilled="4-cd",
    columns=(ColumnDifference("total", 1, 2.5), ColumnDifference("first", 1)),
    rows=RowChanges(
        ("at",),
        (),
        ("total",),
        (RowChange({"at": "1", "total": "1"}, {"at": "1", "total": None}),),
        total=1,
    ),
    earlier=("20260228-120000-abcdef",),
)


def test_a_table_is_equal_only_if_counts_and_digests_say_so() -> None:
    assert EQUAL.result == "equal"
    for table in (replace(EQUAL, changed=1), replace(EQUAL, new=1), replace(EQUAL, gone=1)):
        assert (table.result, table.differing) == ("differs", 1)
    assert replace(EQUAL, backfilled="4-cd").result == "differs"


def test_a_report_differs_if_one_table_does_and_names_what_is_published() -> None:
    assert (REPORT.result, REPORT.differing) == ("equal", ())
    other = replace(DIFFERING, table="visits")
    both = replace(REPORT, tables=(EQUAL, other))
    assert (both.result, both.differing) == ("differs", ("visits",))


def test_a_report_without_a_window_is_empty() -> None:
    empty = replace(EQUAL, equal=0, windows=0, windows_equal=0)
    assert empty.result == "empty"
    assert replace(REPORT, tables=(empty,)).result == "empty"
    assert replace(REPORT, tables=(empty, EQUAL)).result == "equal"
    assert replace(REPORT, tables=(empty, EQUAL, DIFFERING)).result == "differs"


def test_a_document_is_the_report() -> None:
    published = PublishedBackfill(3, "20260301T120000.000Z-7", ("sales",))
    for report in (
        REPORT,
        replace(REPORT, end=NOON, tables=(EQUAL, DIFFERING), published=published),
    ):
        document = json.loads(json.dumps(report.document()))
        assert document["result"] == report.result
        assert decoded(document, BackfillReport) == report
