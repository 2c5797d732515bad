"""Expectations of Great Expectations about a version of a gold table: their arguments, and the SQL
conditions of those about its rows and values.

Great Expectations validates them before the version becomes visible.
"""

from __future__ import annotations

from collections.abc import Mapping

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.bare_words import readable
from headgate.declaration.expressions.inference import Scope
from headgate.declaration.expressions.typed import with_article
from headgate.declaration.suites.arguments import (
    BEFORE_NOW,
    ArgumentKind,
    RuleArgument,
    named_columns,
    text_literal,
)
from headgate.declaration.suites.model import Rule
from headgate.declaration.suites.rows import (
    ABOUT_NULLS,
    COLUMN,
    COLUMN_LIST,
    ENDS,
    ROW_EXPECTATIONS,
    SET,
    Arguments,
    ends_of,
    ignored,
)
from headgate.declaration.types import is_floating, is_time

_MOSTLY = RuleArgument("mostly", ArgumentKind.SHARE)
_VALUES, _NUMBERS = ends_of(ArgumentKind.MOMENT), ends_of(ArgumentKind.NUMBER)

SILVER_SUM = "expect_column_sum_to_equal_silver"
"""Not an expectation of Great Expectations, which validates one table at a time."""

UNIQUE = ("expect_column_values_to_be_unique", "expect_compound_columns_to_be_unique")
GREATEST, LEAST = "expect_column_max_to_be_between", "expect_column_min_to_be_between"
Z_SCORES = "expect_column_value_z_scores_to_be_less_than"

OBSERVE_VALUES = frozenset(
    {
        LEAST,
        GREATEST,
        "expect_column_distinct_values_to_be_in_set",
        "expect_column_distinct_values_to_contain_set",
        "expect_column_distinct_values_to_equal_set",
        "expect_column_most_common_value_to_be_in_set",
    }
)
"""Expectations whose observed value is the value of a row, or the values of several rows."""

OF_NUMBERS = frozenset(
    {
        "expect_column_sum_to_be_between",
        "expect_column_mean_to_be_between",
        "expect_column_median_to_be_between",
        "expect_column_stdev_to_be_between",
        Z_SCORES,
    }
)
"""Expectations that compute with the values of a column. ``true`` counts as 1."""

COUNT_NULLS = (*ABOUT_NULLS, "expect_column_proportion_of_non_null_values_to_be_between")
"""Expectations for columns of all types, including nested types."""

TABLE_EXPECTATIONS: Mapping[str, tuple[RuleArgument, ...]] = {
    "expect_table_row_count_to_be_between": _NUMBERS,
    "expect_table_row_count_to_equal": (RuleArgument("value", ArgumentKind.LENGTH, required=True),),
    LEAST: (COLUMN, *_VALUES),
    GREATEST: (COLUMN, *_VALUES),
    "expect_column_sum_to_be_between": (COLUMN, *_NUMBERS),
    SILVER_SUM: (
        COLUMN,
        RuleArgument("silver", ArgumentKind.SILVER, required=True),
        RuleArgument("tolerance", ArgumentKind.NUMBER),
    ),
    "expect_column_mean_to_be_between": (COLUMN, *_NUMBERS),
    "expect_column_median_to_be_between": (COLUMN, *_NUMBERS),
    "expect_column_stdev_to_be_between": (COLUMN, *_NUMBERS),
    "expect_column_unique_value_count_to_be_between": (COLUMN, *_NUMBERS),
    "expect_column_proportion_of_unique_values_to_be_between": (COLUMN, *_NUMBERS),
    "expect_column_proportion_of_non_null_values_to_be_between": (COLUMN, *_NUMBERS),
    "expect_column_distinct_values_to_be_in_set": (COLUMN, SET),
    "expect_column_distinct_values_to_contain_set": (COLUMN, SET),
    "expect_column_distinct_values_to_equal_set": (COLUMN, SET),
    "expect_column_most_common_value_to_be_in_set": (
        COLUMN,
        SET,
        RuleArgument("ties_okay", ArgumentKind.FLAG),
    ),
    UNIQUE[0]: (COLUMN, _MOSTLY),
    UNIQUE[1]: (*COLUMN_LIST, _MOSTLY),
    Z_SCORES: (
        COLUMN,
        RuleArgument("threshold", ArgumentKind.NUMBER, required=True),
        RuleArgument("double_sided", ArgumentKind.FLAG, required=True),
        _MOSTLY,
    ),
    # Expectations about rows. For a table, ``mostly`` is the share of rows that must meet them.
    **{name: (*row.arguments, _MOSTLY) for name, row in ROW_EXPECTATIONS.items()},
}


_BETWEEN, _IN_SET = "expect_column_values_to_be_between", "expect_column_values_to_be_in_set"


def row_condition(name: str, given: Arguments, scope: Scope) -> str:
    """The condition of an expectation about rows. It is null for a row that does not count for
    ``mostly``, because the expectation does not look at it. Raises Invalid."""
    condition = ROW_EXPECTATIONS[name].condition
    if "column_list" in given or "column_A" in given:
        never = "never" if "column_list" in given else "neither"
        met = f"coalesce({condition({**given, 'ignore_row_if': never}, scope)}, true)"
        left_out = ignored(given)
        return f"case when {left_out} then null else {met} end" if left_out else met
    met = condition(given, scope)
    type_ = scope.get(given["column"])
    if name == _BETWEEN and type_ is not None and is_floating(type_):
        # In Spark, NaN is greater than all numbers.
        return f"{met} and not isnan({readable(given['column'])})"
    return met


def breaking(rule: Rule) -> str | None:
    """The rows of a version that break a rule, as a column in Spark SQL; None if no single row
    does. The column may look at all rows of the version. A rule about the greatest or the least
    value is broken by the rows beyond its bound."""
    name, given = rule.expectation, rule.arguments
    if rule.condition:
        return f"not {rule.condition}"
    if name in UNIQUE:
        names = [readable(column) for column in named_columns(given)]
        left_out = ignored(given) if "column_list" in given else f"({names[0]} is null)"
        repeated = f"count(1) over (partition by {', '.join(names)}) > 1"
        return f"{repeated} and not {left_out}" if left_out else repeated
    if name == Z_SCORES:
        x = f"cast({readable(given['column'])} as double)"
        score = f"({x} - avg({x}) over ()) / stddev_samp({x}) over ()"
        score = f"abs({score})" if given["double_sided"] else score
        return f"{score} > {given['threshold']}"
    for of, key, sign in ((GREATEST, "max_value", ">"), (LEAST, "min_value", "<")):
        if name == of and key in given and not BEFORE_NOW.fullmatch(str(given[key])):
            strict = "=" if given.get(f"strict_{key[:3]}") else ""
            return f"{readable(given['column'])} {sign}{strict} {text_literal(str(given[key]))}"
    return None


def value_condition(given: Arguments, scope: Scope) -> str:
    """The condition that an expectation sets for the values of its column, for one value. Raises
    Invalid if the expectation compares them with a value that the column cannot have."""
    name = given["column"]
    if "value_set" in given:
        return ROW_EXPECTATIONS[_IN_SET].condition(given, scope)
    given = {key: value for key, value in given.items() if key in ("column", *ENDS)}
    past = [key for key in ENDS if BEFORE_NOW.fullmatch(str(given.get(key)))]
    type_ = scope[name]
    if past and type_ is not None and not is_time(type_):
        what = with_article(type_)
        raise Invalid(f"{given[past[0]]!r} is a time, and the column {name!r} is {what}")
    fixed = {key: value for key, value in given.items() if key not in past}
    if len(fixed) == 1:
        return f"{readable(name)} is not null"
    return ROW_EXPECTATIONS[_BETWEEN].condition(fixed, scope)
