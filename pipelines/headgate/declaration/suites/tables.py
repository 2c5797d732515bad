"""Expectations of Great Expectations about a whole table: their arguments.

Great Expectations validates them, with those about rows, before a version of a gold table becomes
visible.
"""

from __future__ import annotations

from collections.abc import Mapping

from headgate.declaration.suites.arguments import Argument, ArgumentKind
from headgate.declaration.suites.rows import (
    ABOUT_NULLS,
    COLUMN,
    COLUMN_LIST,
    ROW_EXPECTATIONS,
    SET,
    ends_of,
)

_MOSTLY = Argument("mostly", ArgumentKind.SHARE)
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

TABLE_EXPECTATIONS: Mapping[str, tuple[Argument, ...]] = {
    "expect_table_row_count_to_be_between": _NUMBERS,
    "expect_table_row_count_to_equal": (Argument("value", ArgumentKind.LENGTH, required=True),),
    LEAST: (COLUMN, *_VALUES),
    GREATEST: (COLUMN, *_VALUES),
    "expect_column_sum_to_be_between": (COLUMN, *_NUMBERS),
    SILVER_SUM: (
        COLUMN,
        Argument("silver", ArgumentKind.SILVER, required=True),
        Argument("tolerance", ArgumentKind.NUMBER),
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
        Argument("ties_okay", ArgumentKind.FLAG),
    ),
    UNIQUE[0]: (COLUMN, _MOSTLY),
    UNIQUE[1]: (*COLUMN_LIST, _MOSTLY),
    Z_SCORES: (
        COLUMN,
        Argument("threshold", ArgumentKind.NUMBER, required=True),
        Argument("double_sided", ArgumentKind.FLAG, required=True),
        _MOSTLY,
    ),
    # Expectations about rows. For a table, ``mostly`` is the share of rows that must meet them.
    **{name: (*row.arguments, _MOSTLY) for name, row in ROW_EXPECTATIONS.items()},
}
