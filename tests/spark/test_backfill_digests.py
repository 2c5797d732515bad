"""Digests of a backfill: an approved result has the same digest when it is computed again."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan, nextafter

import pytest
from pyspark.sql import SparkSession

from headgate.history.backfill.comparing import ComparedCounts, Comparison

pytestmark = pytest.mark.spark

SCHEMA = "at timestamp, number int, total double, events long"
NUMBERS = [0.0, 0.1 + 0.2, 12345678.945, -99999999999.995, 1e-12, 1e300, nan, inf, -inf]


def compared(spark: SparkSession, totals: Sequence[float]) -> ComparedCounts:
    """Rows with these totals, compared with a table that has others."""

    def rows(totals: Sequence[float]) -> str:
        values = (
            f"(timestamp'2026-05-04', {n}, double('{t}'), {n}L)" for n, t in enumerate(totals)
        )
        return f"SELECT * FROM VALUES {', '.join(values)} AS t(at, number, total, events)"

    live, new = spark.sql(rows([7.0] * len(totals))), spark.sql(rows(totals))
    comparison = Comparison(["at", "number"], ["total", "events"], live.schema)
    return comparison.counts(comparison.of(live, new))


def test_sums_in_another_order_are_the_same_and_other_sums_are_not(spark: SparkSession) -> None:
    """The order of addition changes only the last bits of a sum."""
    first = compared(spark, NUMBERS)
    assert first.rows["changed"] == len(NUMBERS)
    last_bits = [nextafter(n, inf) if abs(n) < inf else n for n in NUMBERS]
    assert compared(spark, last_bits).backfilled == first.backfilled
    assert compared(spark, [-0.0, *NUMBERS[1:]]).backfilled == first.backfilled
    for place in (1, 2, 3):
        other = [n * (1 + 1e-8) if at == place else n for at, n in enumerate(NUMBERS)]
        assert compared(spark, other).backfilled != first.backfilled
