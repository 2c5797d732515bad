"""A sum over gold equals the sum over silver without the late rows."""

from __future__ import annotations

from decimal import Decimal

import pytest

from headgate.declaration.suites.model import Rule
from headgate.flow.gates.silver_sums import Sums, compare_sums

BIG = Decimal(10) ** 37


@pytest.mark.parametrize(
    ("gold", "silver", "late", "pairs", "tolerance", "met"),
    [
        (Decimal("10.50"), Decimal("12.00"), Decimal("1.50"), 1, 0, True),
        (Decimal("10.51"), Decimal("12.00"), Decimal("1.50"), 1, 0, False),
        (Decimal(34), Decimal(12), Decimal(2), 3, 0, True),
        (Decimal("3" + 36 * "0" + "1"), BIG, Decimal(0), 3, 0, False),
        (0.3, 0.1 + 0.2, 0.0, 1, 0, False),
        (0.3, 0.1 + 0.2, 0.0, 1, 1e-9, True),
        (Decimal(9), Decimal(10), Decimal(0), 1, 1, True),
        (Decimal(8), Decimal(10), Decimal(0), 1, 1, False),
    ],
)
def test_sums(
    gold: Decimal | float,
    silver: Decimal | float,
    late: Decimal | float,
    pairs: int,
    tolerance: float,
    met: bool,
) -> None:
    rule = Rule("a", "e", {"tolerance": tolerance} if tolerance else {}, action="hold")
    assert compare_sums(rule, Sums(gold, silver, late), pairs).met is met


def test_it_says_both_sums() -> None:
    result = compare_sums(Rule("a", "e", {}), Sums(Decimal("5003.00"), Decimal("5000.10"), 0.0), 1)
    assert str(result) == "a (critical): not met, it is 5003, and 5000.1 in silver"


@pytest.mark.parametrize("sum_", [None, float("nan"), float("inf")])
def test_a_sum_that_is_no_number_is_not_met(sum_: float | None) -> None:
    result = compare_sums(Rule("a", "e", {}), Sums(sum_, 1.0, 0.0), 1)
    assert (result.met, result.error) == (False, "a sum is not a finite number")
