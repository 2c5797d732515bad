"""Which Spark jobs the comparison of a backfill runs."""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import StructType

from headgate.flow.operations.patch import CHANGED, EQUAL, GONE, NEW
from headgate.history.backfill.comparing import ComparedCounts, Comparison


def test_rows_that_are_not_there_are_not_asked_for() -> None:
    """A query would be a Spark job, and it would fail: there is no frame."""
    rows = {EQUAL: 9, **dict.fromkeys((CHANGED, NEW, GONE), 0)}
    counts = ComparedCounts(rows, 3, 3, "same", "same", None)
    comparison = Comparison(["at"], ["total"], StructType())
    no_frame: Any = None
    assert comparison.columns(no_frame, counts) == ()
    assert comparison.rows(no_frame, counts.rows) == ()
