"""Sums of doubles, which the order of the values does not change."""

from __future__ import annotations

import math
from itertools import permutations

import pyarrow as pa
import pytest

from headgate.expectations.aggregates import Values

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
