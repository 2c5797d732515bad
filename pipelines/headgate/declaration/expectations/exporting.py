"""Exports a suite as the JSON of a suite of Great Expectations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headgate.declaration.expressions.hardening import harden
from headgate.declaration.names import Columns
from headgate.declaration.quantities import parse_duration
from headgate.declaration.suites.arguments import (
    BEFORE_NOW,
    ArgumentKind,
    RuleArgument,
    number,
    plain_number,
    truth,
)
from headgate.declaration.suites.model import Rule, Suite
from headgate.declaration.suites.versions import SILVER_SUM, TABLE_EXPECTATIONS
from headgate.declaration.types import BOOLEAN, DOUBLE, DataType, is_number

META = "headgate"
"""The key in an expectation's ``meta`` for what Great Expectations has no field for."""
SQL = "unexpected_rows_expectation"
SELECT = "SELECT * FROM {batch} WHERE "


def left_out(suite: Suite) -> Iterator[str]:
    """The rules that Great Expectations cannot express, and why."""
    for rule in suite.rules:
        if rule.expectation == SILVER_SUM:
            yield f"{rule.id}: it looks at two tables"


def exported(suite: Suite, columns: Columns) -> dict[str, Any]:
    """The suite as Great Expectations stores one, without what is ``left_out``. ``columns`` are
    those of its table."""
    listed = [
        {
            "type": rule.expectation or SQL,
            "kwargs": _named(rule, columns) if rule.expectation else _queried(rule),
            "meta": {META: _meta(rule)},
            "severity": rule.severity,
        }
        for rule in suite.rules
        if rule.expectation != SILVER_SUM
    ]
    return {"name": suite.name, "expectations": listed, "meta": {}, "notes": None}


def query_of(condition: str) -> str:
    """The query for the rows that break a condition. In it, ``{batch}`` stands for the rows, and
    braces of the condition are doubled."""
    return SELECT + f"NOT {condition}".replace("{", "{{").replace("}", "}}")


def filter_of(row_condition: str) -> dict[str, str]:
    """A condition of Spark SQL as a ``row_condition``."""
    return {"type": "pass_through", "pass_through_filter": harden(row_condition.strip())}


def _meta(rule: Rule) -> dict[str, Any]:
    meta: dict[str, Any] = {"id": rule.id, "action": rule.action}
    if rule.above is not None:
        meta["above"] = rule.above
    written = {"expect": rule.sql, "row_condition": rule.row_condition}
    return meta | {key: text for key, text in written.items() if text}


def _queried(rule: Rule) -> dict[str, Any]:
    return {"unexpected_rows_query": query_of(rule.condition)}


def _named(rule: Rule, columns: Columns) -> dict[str, Any]:
    known = {a.name: a for a in TABLE_EXPECTATIONS[str(rule.expectation)]}
    given = {
        name: _argument(value, known[name], rule, columns) for name, value in rule.arguments.items()
    }
    return given | ({"row_condition": filter_of(rule.row_condition)} if rule.row_condition else {})


def _argument(value: Any, argument: RuleArgument, rule: Rule, columns: Columns) -> Any:
    """An argument's value, in the type of the column that it is compared with."""
    if argument.kind is ArgumentKind.VALUE:
        # A sum is compared with a number, whatever the types of its columns are.
        name = rule.arguments.get("column")
        return _typed(value, columns[name] if name else DOUBLE)
    if argument.kind in (ArgumentKind.MOMENT, ArgumentKind.NUMBER):
        is_fraction = isinstance(value, str) and number(value) is not None
        return float(value) if is_fraction else as_parameter(value)
    if argument.kind is ArgumentKind.VALUES:
        return [_typed(each, columns[rule.arguments["column"]]) for each in value]
    if argument.kind is ArgumentKind.PAIRS:
        types = [columns[rule.arguments[name]] for name in ("column_A", "column_B")]
        return [[_typed(e, t) for e, t in zip(pair, types, strict=True)] for pair in value]
    return value


def as_parameter(value: Any) -> Any:
    """A value. A time before the validation becomes a parameter that Great Expectations computes in
    local time."""
    found = BEFORE_NOW.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return value
    seconds = f"{parse_duration(found[1]).total_seconds():.6f}".rstrip("0").rstrip(".")
    return {"$PARAMETER": f"now() - timedelta(seconds={seconds})"}


def _typed(written: str, type_: DataType) -> str | int | float | bool | None:
    if type_ == BOOLEAN:
        return truth(written)
    if not is_number(type_):
        return written
    found = plain_number(written)
    return float(found) if isinstance(found, str) else found
