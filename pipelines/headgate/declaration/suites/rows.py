"""Expectations of Great Expectations that look at one row, as SQL conditions.

Each condition has the same result for a row as Great Expectations on Spark; a test compares them.
An expectation about the values of a column ignores nulls, except those about nulls. A condition
that is null counts as met.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.bare_words import readable
from headgate.declaration.expressions.inference import Scope
from headgate.declaration.expressions.typed import with_article
from headgate.declaration.suites.arguments import (
    ArgumentKind,
    RuleArgument,
    literal,
    number,
    text_literal,
)
from headgate.declaration.types import INTEGRALS, DataType, is_number, is_time

Arguments = Mapping[str, Any]
ENDS = ("min_value", "max_value")


@dataclass(frozen=True)
class RowExpectation:
    """``condition`` gives the SQL condition that a row meets, from the arguments and the types of
    the columns. It raises Invalid if the arguments do not fit."""

    arguments: tuple[RuleArgument, ...]
    condition: Callable[[Arguments, Scope], str]


def _type(name: str, scope: Scope) -> DataType:
    type_ = scope[name]
    assert type_ is not None  # read_argument has checked it
    return type_


def _literal(value: Any, name: str, scope: Scope) -> str:
    return literal(str(value), _type(name, scope))


def _is_null(given: Arguments, scope: Scope) -> str:
    return f"{readable(given['column'])} is null"


def _is_not_null(given: Arguments, scope: Scope) -> str:
    return f"{readable(given['column'])} is not null"


def _between(given: Arguments, scope: Scope) -> str:
    name = given["column"]
    type_ = _type(name, scope)
    if not (is_number(type_) or is_time(type_)):
        raise Invalid(f"is for numbers and times; the column {name!r} is {with_article(type_)}")
    bounds = {k: _literal(given[k], name, scope) for k in ENDS if k in given}
    return _bounded(readable(name), given, bounds)


def _length_between(given: Arguments, scope: Scope) -> str:
    bounds = {k: str(given[k]) for k in ENDS if k in given}
    return _bounded(f"length({readable(given['column'])})", given, bounds)


def check_ends(given: Arguments) -> None:
    """Raises Invalid if both ends are numbers, and no value can be between them."""
    low, high = (number(given.get(end)) for end in ENDS)
    if low is not None and high is not None and low > high:
        raise Invalid("min_value is greater than max_value")


def _bounded(value: str, given: Arguments, bounds: Mapping[str, str]) -> str:
    if not bounds:
        raise Invalid("needs min_value or max_value")
    check_ends(given)
    parts = []
    if "min_value" in bounds:
        parts.append(f"{value} {'>' if given.get('strict_min') else '>='} {bounds['min_value']}")
    if "max_value" in bounds:
        parts.append(f"{value} {'<' if given.get('strict_max') else '<='} {bounds['max_value']}")
    return " and ".join(parts)


def _length_equals(given: Arguments, scope: Scope) -> str:
    return f"length({readable(given['column'])}) = {given['value']}"


def _in_set(given: Arguments, scope: Scope) -> str:
    name = given["column"]
    values = ", ".join(_literal(value, name, scope) for value in given["value_set"])
    return f"{readable(name)} in ({values})"


def _not_in_set(given: Arguments, scope: Scope) -> str:
    return f"not ({_in_set(given, scope)})"


def _matches(given: Arguments, regex: str) -> str:
    return f"({readable(given['column'])} rlike {text_literal(regex)})"


def _match_regex(given: Arguments, scope: Scope) -> str:
    return _matches(given, given["regex"])


def _not_match_regex(given: Arguments, scope: Scope) -> str:
    return f"not {_matches(given, given['regex'])}"


def _match_regex_list(given: Arguments, scope: Scope) -> str:
    word = " and " if given.get("match_on") == "all" else " or "
    return word.join(_matches(given, regex) for regex in given["regex_list"])


def _not_match_regex_list(given: Arguments, scope: Scope) -> str:
    return " and ".join(f"not {_matches(given, regex)}" for regex in given["regex_list"])


def _pair_greater(given: Arguments, scope: Scope) -> str:
    first, second = readable(given["column_A"]), readable(given["column_B"])
    met = f"({first} {'>=' if given.get('or_equal') else '>'} {second})"
    if given.get("or_equal"):
        met = f"({met} or ({first} <=> {second}))"
    return _unless_ignored(met, given)


def _pair_equal(given: Arguments, scope: Scope) -> str:
    met = f"({readable(given['column_A'])} <=> {readable(given['column_B'])})"
    return _unless_ignored(met, given)


def _pair_in_set(given: Arguments, scope: Scope) -> str:
    first, second = given["column_A"], given["column_B"]
    pairs = (
        f"(({readable(first)} <=> {_literal(a, first, scope)}) "
        f"and ({readable(second)} <=> {_literal(b, second, scope)}))"
        for a, b in given["value_pairs_set"]
    )
    return _unless_ignored(f"({' or '.join(pairs)})", given)


def _sum_equals(given: Arguments, scope: Scope) -> str:
    def operand(name: str) -> str:
        value = f"coalesce({readable(name)}, 0)"
        # As in Great Expectations: a sum of whole numbers cannot overflow. A longer type would
        # leave few digits after the point for a decimal that is added.
        return f"cast({value} as decimal(20,0))" if _type(name, scope) in INTEGRALS else value

    if (total := number(given["sum_total"])) is None:
        raise Invalid(f"sum_total must be a number, not {given['sum_total']!r}")
    if not math.isfinite(total):
        raise Invalid(f"sum_total: {given['sum_total']} is too large a number")
    names = given["column_list"]
    met = f"(({' + '.join(map(operand, names))}) = {given['sum_total']})"
    return _unless_ignored(met, given)


def _all_equal(given: Arguments, scope: Scope) -> str:
    first, *others = map(readable, given["column_list"])
    met = " and ".join(f"({first} <=> {other})" for other in others)
    return _unless_ignored(f"({met})", given)


def _all_different(given: Arguments, scope: Scope) -> str:
    pairs = combinations(map(readable, given["column_list"]), 2)
    met = " and ".join(f"(not ({a} <=> {b}))" for a, b in pairs)
    return _unless_ignored(f"({met})", given)


def _unless_ignored(met: str, given: Arguments) -> str:
    """A condition about several columns. Rows that ``ignore_row_if`` leaves out meet it too."""
    left_out = ignored(given)
    return f"{left_out} or {met}" if left_out else met


def ignored(given: Arguments) -> str:
    """The condition of the rows that ``ignore_row_if`` leaves out, in parentheses; empty if it
    leaves out none."""
    names = given.get("column_list") or [given["column_A"], given["column_B"]]
    ways = _MANY if "column_list" in given else _PAIR
    word = ways[given.get("ignore_row_if", next(iter(ways)))]
    nulls = f" {word} ".join(f"({readable(name)} is null)" for name in names)
    return f"({nulls})" if word else ""


def ends_of(kind: ArgumentKind) -> tuple[RuleArgument, ...]:
    """The arguments of a range of values."""
    strict = (RuleArgument(name, ArgumentKind.FLAG) for name in ("strict_min", "strict_max"))
    return (*(RuleArgument(name, kind) for name in ENDS), *strict)


# How the columns that are null are joined, the default first.
_PAIR = {"both_values_are_missing": "and", "either_value_is_missing": "or", "neither": ""}
_MANY = {"all_values_are_missing": "and", "any_value_is_missing": "or", "never": ""}

COLUMN = RuleArgument("column", ArgumentKind.COLUMN, required=True)
SET = RuleArgument("value_set", ArgumentKind.VALUES, required=True)
_REGEX = RuleArgument("regex", ArgumentKind.REGEX, required=True)
_REGEXES = RuleArgument("regex_list", ArgumentKind.REGEXES, required=True)
_MATCH_ON = RuleArgument("match_on", ArgumentKind.CHOICE, choices=("any", "all"))
_COLUMN_PAIR = (
    RuleArgument("column_A", ArgumentKind.COLUMN, required=True),
    RuleArgument("column_B", ArgumentKind.COLUMN, required=True),
    RuleArgument("ignore_row_if", ArgumentKind.CHOICE, choices=tuple(_PAIR)),
)
COLUMN_LIST = (
    RuleArgument("column_list", ArgumentKind.COLUMNS, required=True),
    RuleArgument("ignore_row_if", ArgumentKind.CHOICE, choices=tuple(_MANY)),
)
_OR_EQUAL = RuleArgument("or_equal", ArgumentKind.FLAG)
_PAIRS = RuleArgument("value_pairs_set", ArgumentKind.PAIRS, required=True)
_TOTAL = RuleArgument("sum_total", ArgumentKind.VALUE, required=True)
_LENGTH = RuleArgument("value", ArgumentKind.LENGTH, required=True)

ABOUT_NULLS = ("expect_column_values_to_not_be_null", "expect_column_values_to_be_null")
"""Expectations for columns of all types, including nested types."""
ROW_EXPECTATIONS: Mapping[str, RowExpectation] = {
    name: RowExpectation(arguments, condition)
    for name, arguments, condition in (
        (ABOUT_NULLS[0], (COLUMN,), _is_not_null),
        (ABOUT_NULLS[1], (COLUMN,), _is_null),
        ("expect_column_values_to_be_between", (COLUMN, *ends_of(ArgumentKind.VALUE)), _between),
        ("expect_column_values_to_be_in_set", (COLUMN, SET), _in_set),
        ("expect_column_values_to_not_be_in_set", (COLUMN, SET), _not_in_set),
        ("expect_column_values_to_match_regex", (COLUMN, _REGEX), _match_regex),
        ("expect_column_values_to_not_match_regex", (COLUMN, _REGEX), _not_match_regex),
        (
            "expect_column_values_to_match_regex_list",
            (COLUMN, _REGEXES, _MATCH_ON),
            _match_regex_list,
        ),
        (
            "expect_column_values_to_not_match_regex_list",
            (COLUMN, _REGEXES),
            _not_match_regex_list,
        ),
        (
            "expect_column_value_lengths_to_be_between",
            (COLUMN, *ends_of(ArgumentKind.LENGTH)),
            _length_between,
        ),
        ("expect_column_value_lengths_to_equal", (COLUMN, _LENGTH), _length_equals),
        (
            "expect_column_pair_values_a_to_be_greater_than_b",
            (*_COLUMN_PAIR, _OR_EQUAL),
            _pair_greater,
        ),
        ("expect_column_pair_values_to_be_equal", _COLUMN_PAIR, _pair_equal),
        ("expect_column_pair_values_to_be_in_set", (*_COLUMN_PAIR, _PAIRS), _pair_in_set),
        ("expect_multicolumn_sum_to_equal", (*COLUMN_LIST, _TOTAL), _sum_equals),
        ("expect_multicolumn_values_to_be_equal", COLUMN_LIST, _all_equal),
        ("expect_select_column_values_to_be_unique_within_record", COLUMN_LIST, _all_different),
    )
}
