"""Which table is proposed for a name that no table has."""

from __future__ import annotations

import pytest

from headgate.insight.querying.names import nearest_names

KNOWN = [
    *("bronze.orders", "quarantine.orders", "silver.clean", "late.sales_per_hour"),
    *("gold.sales_per_hour", "quarantine", "files"),
]


@pytest.mark.parametrize(
    ("given", "near"),
    [
        ("gold.sales_per_hr", "gold.sales_per_hour"),
        ("late.sales_per_hr", "late.sales_per_hour"),
        ("sales", "gold.sales_per_hour"),
        ("late.sales", "late.sales_per_hour"),
        ("Order", "bronze.orders"),
        ("gold.clean", "silver.clean"),
        ("quarantin", "quarantine"),
    ],
)
def test_the_nearest_table_is_named(given: str, near: str) -> None:
    assert nearest_names(given, KNOWN) == [near]


def test_tables_of_several_pipelines_are_named() -> None:
    known = [f"{pipeline}.{name}" for pipeline in ("a", "b") for name in KNOWN[3:5]]
    assert nearest_names("sales", known) == ["a.gold.sales_per_hour", "b.gold.sales_per_hour"]
    assert nearest_names("b.gold.sales_per_h", known) == ["b.gold.sales_per_hour"]


def test_nothing_is_named_where_nothing_is_near() -> None:
    assert nearest_names("xyz", KNOWN) == []
