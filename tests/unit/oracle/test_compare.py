"""Differences in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from tests.oracle import compare

Rows = list[dict[str, Any]]
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def test_equal_rows_in_any_order_with_columns_to_spare() -> None:
    expected: Rows = [{"k": 1, "v": 0.1 + 0.2, "b": b"x"}, {"k": None, "v": None, "b": None}]
    actual: Rows = [
        {"k": None, "v": None, "b": None},
        {"k": 1, "v": 0.3, "b": bytearray(b"x"), "z": 0},
    ]
    assert compare(expected, actual, ["k"]) == []


@pytest.mark.parametrize(
    ("wanted", "found", "same"),
    [
        (Decimal("1.50"), Decimal("1.5"), True),
        (Decimal("1.50"), Decimal("1.51"), False),
        (Decimal("1.50"), 1.5, False),
        (1, True, False),
        (1, 1.0, True),
        (1, 2, False),
        (10**18, 10**18 + 1, False),
        (1.0, 1.0 + 1e-10, True),
        (1.0, 1.0 + 1e-8, False),
        (float("nan"), float("nan"), True),
        (None, 0, False),
        ("a", b"a", False),
        (NOON, NOON.astimezone(timezone(timedelta(hours=2))), True),
        (NOON, NOON.replace(tzinfo=None), False),
        (NOON, NOON + timedelta(microseconds=1), False),
        ([1.0, "a"], (1.0 + 1e-12, "a"), True),
        ([1], [1, 2], False),
        ({"a": 1, "b": [2]}, {"b": [2], "a": 1}, True),
    ],
)
def test_values(wanted: Any, found: Any, same: bool) -> None:
    assert (compare([{"k": 1, "v": wanted}], [{"k": 1, "v": found}], ["k"]) == []) is same


def test_differences_name_the_row_and_the_column() -> None:
    expected: Rows = [{"k": 1, "v": "tea"}, {"k": 2, "v": NOON}, {"k": 4, "v": None}]
    actual: Rows = [{"k": 1, "v": "milk"}, {"k": 3, "v": None}, {"k": 4}, {"k": 4, "v": None}]
    assert compare(expected, actual, ["k"]) == [
        "twice in actual: 4",
        "k=1: v is 'milk', expected 'tea'",
        "missing: k=2",
        "unexpected: k=3",
    ]
    assert compare([{"k": 4, "v": 1}], [{"k": 4}], ["k"]) == [
        "k=4: v is '(no such column)', expected 1"
    ]


def test_keys_of_several_columns_with_nulls_and_times() -> None:
    expected: Rows = [{"at": NOON, "k": None, "v": 1}, {"at": NOON, "k": "a", "v": 1}]
    later = timezone(timedelta(hours=1))
    actual = [{"at": NOON.astimezone(later), "k": "a", "v": 1}]
    assert compare(expected, actual, ["at", "k"]) == [
        "missing: at=2026-03-01T12:00:00+00:00, k=None"
    ]


def test_an_approximate_column_has_its_own_error() -> None:
    expected, actual = [{"k": 1, "v": 1000}], [{"k": 1, "v": 1030}]
    assert compare(expected, actual, ["k"], {"v": 0.05}) == []
    assert compare(expected, actual, ["k"], {"v": 0.01}) != []


def test_at_most_twenty_lines() -> None:
    rows = [{"k": number} for number in range(25)]
    lines = compare(rows, [], ["k"])
    assert len(lines) == 20
    assert lines[-1] == "and 6 more"
    assert len(compare(rows[:20], [], ["k"])) == 20
