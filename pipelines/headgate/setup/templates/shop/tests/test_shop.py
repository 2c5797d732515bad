"""The declarations of this project load: every key, column and expression in them is valid."""

from __future__ import annotations

from pathlib import Path

from headgate.declaration.load import load

PROJECT = Path(__file__).parents[1]


def test_shop_is_a_valid_declaration() -> None:
    shop = load(PROJECT / "pipelines" / "shop.yml")
    assert shop.gold["sales_per_hour"].silver == "clean_orders"
