"""Rules that are proposed from rows: every row meets them, and each says what was seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headgate.declaration.expectations import profiling
from headgate.declaration.expectations.written import WrittenRule
from headgate.declaration.suites.model import MOST_RULES
from headgate.declaration.type_parser import parse_type
from tests.support.profiled import ARROW, Profiled, Rows
from tests.support.suites import ROWS, TYPES


def of_column(type_: str, *values: Any) -> list[WrittenRule]:
    return list(Profiled([{"x": v} for v in values], {"x": parse_type(type_)}).rules)


def asked(rules: Sequence[WrittenRule]) -> dict[str, dict[str, Any]]:
    """The arguments of each rule, by its id."""
    left_out = ("id", "expect", "column", "action")
    return {r.keys["id"]: {k: v for k, v in r.keys.items() if k not in left_out} for r in rules}


@pytest.mark.slow
@settings(max_examples=30)
@given(rows=ROWS)
def test_every_row_that_is_there_meets_the_proposal(rows: list[dict[str, Any]]) -> None:
    found = Profiled(rows)
    assert found.broken() == 0
    not_null = {name for name in TYPES if all(row[name] is not None for row in rows)}
    of = "expect_column_values_to_not_be_null"
    assert {r.keys["column"] for r in found.rules if r.keys["expect"] == of} == not_null
    assert {rule.keys["action"] for rule in found.rules} <= {"warn"}


@pytest.mark.slow
@settings(max_examples=30)
@example(values=["${name}"])
@given(values=st.lists(st.text(), min_size=1, max_size=6))
def test_any_text_can_be_a_value_of_a_set(values: list[str]) -> None:
    # Text that is not valid UTF-8 never gets into a table.
    texts = [value.encode(errors="replace").decode() for value in values]
    assert of_column("string", *texts, *texts)


@pytest.mark.slow
@settings(max_examples=30)
@given(values=st.lists(st.floats(width=32), min_size=1, max_size=4))
def test_any_number_is_within_the_range_that_is_proposed(values: list[float]) -> None:
    for type_ in ("float", "double"):
        rows = [{"x": value} for value in values]
        assert Profiled(rows, {"x": parse_type(type_)}).broken() == 0


def test_a_rule_says_what_was_seen() -> None:
    rules = of_column("int", 3, None, -1, 12)
    assert asked(rules) == {"x_between": {"min_value": -1, "max_value": 12}}
    assert rules[0].comment == "4 rows, 1 null, from -1 to 12"
    assert of_column("int", 1)[0].comment == "1 row, no nulls"


def test_values_that_repeat_become_a_set_and_others_a_length() -> None:
    assert asked(of_column("string", "b", "a", "b", "a", None)) == {
        "x_in_set": {"value_set": ["a", "b"]}
    }
    assert asked(of_column("string", "b", "abc", None)) == {
        "x_lengths_between": {"min_value": 1, "max_value": 3}
    }
    many = [str(number) for number in range(profiling.MOST_VALUES + 1)] * 3
    assert "x_in_set" not in asked(of_column("string", *many))
    assert "x_in_set" in asked(of_column("string", *many[1:20] * 3))


def test_values_beyond_all_numbers_have_no_bound() -> None:
    nan, infinite = float("nan"), float("inf")
    assert asked(of_column("double", 1.5, nan, None)) == {"x_between": {"min_value": "1.5"}}
    assert asked(of_column("double", -infinite, 1.5, None)) == {"x_between": {"max_value": "1.5"}}
    assert asked(of_column("double", infinite, -infinite, None)) == {}


def test_a_column_of_nulls_gets_no_rule() -> None:
    assert [of_column(type_, None, None) for type_ in ARROW] == [[]] * len(ARROW)


def test_the_most_useful_rules_are_kept_where_there_are_too_many() -> None:
    types = {f"c{number}": parse_type("int") for number in range(40)}
    found = Profiled([dict.fromkeys(types, 1)], types)
    assert (len(found.rules), found.left_out) == (MOST_RULES, 18)
    kept = [rule.keys["expect"] for rule in found.rules]
    assert kept.count("expect_column_values_to_not_be_null") == 40


def test_a_column_with_parts_is_only_asked_for_nulls() -> None:
    rows: Rows = [{"x": ["a"]}, {"x": []}]
    found = Profiled(rows, {"x": parse_type("array<string>")}).rules
    assert [rule.keys["expect"] for rule in found] == ["expect_column_values_to_not_be_null"]
