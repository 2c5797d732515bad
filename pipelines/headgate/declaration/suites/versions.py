"""The SQL conditions of expectations about the rows and the values of a version of a gold table."""

from __future__ import annotations

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.inference import Scope
from headgate.declaration.expressions.typed import with_article
from headgate.declaration.expressions.words import readable
from headgate.declaration.suites.arguments import BEFORE_NOW, named_columns, text_literal
from headgate.declaration.suites.model import Rule
from headgate.declaration.suites.rows import ENDS, ROW_EXPECTATIONS, Arguments, ignored
from headgate.declaration.suites.tables import GREATEST, LEAST, UNIQUE, Z_SCORES
from headgate.declaration.types import is_floating, is_time

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
