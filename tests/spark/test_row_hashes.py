"""The form in which values of rows are compared and hashed."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headgate.lake.tables.row_values import comparable, row_hashes

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("array(1, null)", "array(null, 1)"),
        ("array(1)", "array(1, null)"),
        ("struct(1 as a, int(null) as b)", "struct(int(null) as a, 1 as b)"),
        ("map('a', 1)", "map('b', 1)"),
        (
            "array(timestamp '2026-01-01 00:00:00.000001')",
            "array(timestamp '2026-01-01 00:00:00.000002')",
        ),
        (
            "map('a', timestamp '2026-01-01 00:00:00.000001')",
            "map('a', timestamp '2026-01-01 00:00:00.000002')",
        ),
        ("null", "''"),
    ],
)
def test_values_that_differ_have_other_hashes(spark: SparkSession, one: str, other: str) -> None:
    rows = spark.sql(f"select {one} as v union all select {other}")
    value = comparable(F.col("v"), rows.schema["v"].dataType)
    first, second = rows.select(value, *row_hashes([value])).collect()
    for before, after in zip(first, second, strict=True):
        assert before != after
