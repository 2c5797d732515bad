"""Values of a version of a table, added up and compared."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import permutations
from pathlib import Path

import pyarrow as pa
import pytest

from headgate.declaration.expectations.aggregates import Values, aggregated
from headgate.declaration.reading.checked import ProblemReport
from headgate.declaration.suites.reading import VersionSubject, read_suite
from tests.support.suites import TYPES

INF = math.inf


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([0.1, 0.2, 0.3, -0.6], 2.0**-55),
        ([-1e308, -1e308, 1e308, 1e308], 0.0),
        ([1e308, 1e308, -1e308], 1e308),
        ([1e308, 1e308, -1.0], INF),
        ([-1e308, -1e308, 1.0], -INF),
        ([1e308, 1e308, -INF], -INF),
        ([INF, -INF, 1.0], math.nan),
        ([1e308, 1e308, INF, -INF], math.nan),
    ],
)
def test_a_sum_is_the_double_nearest_to_it(values: list[float], total: float) -> None:
    for each in permutations(values):
        found = Values(pa.table({"x": pa.array(each, pa.float64())})).total("x")
        assert found == total or (math.isnan(found) and math.isnan(total)), each


@pytest.mark.parametrize(
    ("column", "values", "written"),
    [
        ("s", pa.array(["01067", "1.50", "true", "2026-01-31"]), "01067, 1.50, true, 2026-01-31"),
        ("b", pa.array([True, False]), "True, 'false'"),
        ("i", pa.array([1067, 5, 5, 5], pa.int32()), "01067, '5'"),
        ("p", pa.array([Decimal("1.50")], pa.decimal128(18, 2)), "1.5"),
        ("day", pa.array([date(2026, 1, 31)]), "2026-01-31"),
    ],
)
def test_values_are_compared_with_what_is_written_in_the_type_of_their_column(
    column: str, values: pa.Array, written: str
) -> None:
    rule = "id: a, expect: expect_column_distinct_values_to_equal_set"
    text = f"expectations: [{{{rule}, column: {column}, value_set: [{written}]}}]"
    report = ProblemReport(Path("gold.yml"))
    (asked,) = read_suite("gold", text, VersionSubject(TYPES, TYPES, (), 1), report).rules
    assert report.problems == []
    version = Values(pa.table({column: values}))
    assert aggregated(asked, version, datetime(2026, 1, 1, tzinfo=UTC))[0]
