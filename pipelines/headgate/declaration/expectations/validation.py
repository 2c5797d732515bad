"""Validates a version of a table.

Spark reads the columns that the rules need in one job. A condition is a column of truth values, so
Spark compares values as it does in silver. Great Expectations counts in memory: on Spark it runs
several jobs per rule, which took 6 s where this took 0.4 s. Rules about all values of a column are
computed exactly (``aggregates.py``); Great Expectations would convert the values to doubles.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from headgate.declaration.expectations.aggregates import AGGREGATES, Values, aggregated
from headgate.declaration.expectations.library import great_expectations
from headgate.declaration.expectations.result import RuleResult
from headgate.declaration.suites.arguments import named_columns
from headgate.declaration.suites.model import Rule
from headgate.declaration.suites.versions import UNIQUE, Z_SCORES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def validate(frame: DataFrame, rules: Sequence[Rule], now: datetime) -> tuple[RuleResult, ...]:
    """The results of rules over all rows of a frame, in their order. A rule that raises an error is
    not met."""
    if not rules:
        return ()
    values = Values(frame.select(*_columns(frame, rules)).toArrow())
    found = {rule.id: _by_us(rule, values, now) for rule in rules}
    others = [rule for rule in rules if found[rule.id] is None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found |= _by_theirs(others, values) if others else {}
    return tuple(result for rule in rules if (result := found[rule.id]) is not None)


def _columns(frame: DataFrame, rules: Sequence[Rule]) -> list[Column]:
    """The columns of the rules. Each condition is a column of its own."""
    from pyspark.sql import functions as F

    of_whole = [rule for rule in rules if not rule.condition]
    names = dict.fromkeys(name for rule in of_whole for name in named_columns(rule.arguments))
    columns = [F.col(f"`{name}`") for name in names]
    columns += [F.expr(rule.condition).alias(_column_of(rule)) for rule in rules if rule.condition]
    return columns or [F.lit(1).alias("row")]


def _column_of(rule: Rule) -> str:
    """A name that no table's column has."""
    return f"_rule_{rule.id}"


def _by_us(rule: Rule, values: Values, now: datetime) -> RuleResult | None:
    """The result of a rule about all values of a column; None if Great Expectations validates the
    rule."""
    try:
        if rule.expectation in AGGREGATES:
            is_met, observed = aggregated(rule, values, now)
            return RuleResult.of(rule, met=is_met, observed=observed)
        if rule.expectation == Z_SCORES and not values.are_finite(rule.arguments["column"]):
            return RuleResult.of(rule, observed=str(math.nan))
    except Exception as error:
        return RuleResult.of(rule, error=str(error))
    return None


def _by_theirs(rules: Sequence[Rule], values: Values) -> dict[str, RuleResult | None]:
    """The results of Great Expectations."""
    import pandas as pd

    columns: dict[str, Any] = {}
    found: dict[str, RuleResult | None] = {}
    asked: dict[str, Any] = {}
    for rule in rules:
        try:
            asked[rule.id] = _expectation(rule, values, columns)
        except Exception as error:
            found[rule.id] = RuleResult.of(rule, error=str(error))
    try:
        said = _validated(pd.DataFrame(columns), [*asked.values()]) if asked else {}
    except Exception as error:
        return found | {r.id: RuleResult.of(r, error=str(error)) for r in rules if r.id in asked}
    return found | {r.id: _result(r, said[r.id]) for r in rules if r.id in asked}


def _expectation(rule: Rule, values: Values, columns: dict[str, Any]) -> Any:
    """The expectation of Great Expectations for a rule. The columns that it needs are added to
    ``columns``."""
    name, arguments = str(rule.expectation), dict(rule.arguments)
    if rule.condition:
        name = "expect_column_values_to_be_in_set"
        mostly = {"mostly": arguments["mostly"]} if "mostly" in arguments else {}
        arguments = {"column": _column_of(rule), "value_set": [True], **mostly}
        columns[_column_of(rule)] = values.table[_column_of(rule)].to_pandas()
    elif name in UNIQUE:
        columns |= {column: values.numbered(column) for column in named_columns(arguments)}
    else:
        columns[f"_double_{arguments['column']}"] = values.doubles(arguments["column"])
        arguments |= {
            "column": f"_double_{arguments['column']}",
            "threshold": float(arguments["threshold"]),
        }
    expectation: Any = great_expectations().expectations.registry.get_expectation_impl(name)
    return expectation(**arguments, meta={"rule": rule.id}, severity=rule.severity)


def _validated(frame: Any, expectations: Sequence[Any]) -> dict[str, Any]:
    """The results of Great Expectations by rule."""
    gx = great_expectations()
    context: Any = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    asset = context.data_sources.add_pandas("table").add_dataframe_asset("version")
    batch = asset.add_batch_definition_whole_dataframe("rows").get_batch({"dataframe": frame})
    suite = gx.ExpectationSuite(name="rules", expectations=list(expectations))
    results: list[Any] = batch.validate(suite, result_format="SUMMARY").results
    return {result.expectation_config.meta["rule"]: result for result in results}


def _result(rule: Rule, said: Any) -> RuleResult:
    observed = said.result.get("observed_value")
    unexpected, rows = (said.result.get(key) for key in ("unexpected_count", "element_count"))
    return RuleResult(
        rule=rule.id,
        severity=rule.severity,
        action=rule.action,
        met=bool(said.success),
        observed=None if observed is None else str(observed),
        unexpected=None if unexpected is None else int(unexpected),
        error=_error(said.exception_info),
        rows=None if rows is None else int(rows),
        ignored=int(said.result.get("missing_count") or 0),
    )


def _error(info: Mapping[str, Any]) -> str | None:
    """The message of a rule that raised; None if it did not. Great Expectations has two forms for
    it."""
    found = [info] if "raised_exception" in info else list(info.values())
    raised = (each for each in found if each.get("raised_exception"))
    return next((str(each.get("exception_message")) for each in raised), None)
