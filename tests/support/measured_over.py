"""Measures over the rows before each purchase of ``joined_project``, as a table declares them, and
how their values are compared."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

MEASURED = """\
      by: {buyer: purchases.user}
      measures:
        bought: count(*)
        paid: sum(purchases.amount)
        mean: avg(purchases.amount)
        spread: stddev(purchases.amount)
        least: min(purchases.amount)
        dear: count_if(purchases.amount >= 50)
        prices: count_distinct(purchases.amount)
        cheap: sum(purchases.amount) filter (where purchases.amount < 50)
    columns:
      purchase: purchases.id
      bought: bought
      paid: paid
      mean: mean
      spread: spread
      least: least
      dear: dear
      prices: prices
      cheap: cheap
"""
MEASURES = ("bought", "paid", "mean", "spread", "least", "dear", "prices", "cheap")

Rows = Mapping[str, tuple[Any, ...]]
"""The values of each purchase, by its id."""


def require_same(found: Rows, meant: Rows) -> None:
    """Numbers with fractions may differ in their last digits."""
    assert found.keys() == meant.keys()
    for id_, row in found.items():
        for value, other in zip(row, meant[id_], strict=True):
            is_number = isinstance(value, float | Decimal)
            assert value == other or (is_number and float(value) == pytest.approx(other)), id_
