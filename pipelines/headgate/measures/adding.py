"""Sums and counts, which several measures keep."""

from __future__ import annotations

import re

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions import datatypes
from headgate.declaration.measures import Field
from headgate.declaration.model import Measure

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
INTEGERS = frozenset({"tinyint", "smallint", "int", "integer", "bigint", "long"})
_ADD = "case when {old} is null then {new} when {new} is null then {old} else {old} + {new} end"


def require_number(name: str, argument: str) -> None:
    """Raises Invalid."""
    if not datatypes.is_number(argument):
        raise Invalid(f"{name}() takes a number, not a {argument}")


def digits(type_: str | None) -> tuple[int, int] | None:
    """Precision and scale of a decimal; None of any other type."""
    match = _DECIMAL.fullmatch(type_ or "")
    return (int(match[1]), int(match[2])) if match else None


def cast(expression: str, type_: str) -> str:
    return f"cast({expression} as {type_})"


def added(type_: str, partial: str) -> Field:
    return Field(type_, cast(partial, type_), cast(_ADD, type_))


def counted(measure: Measure) -> Field:
    """The number of rows whose argument is not null, or of all rows where there is none."""
    return added("bigint", "count(*)" if measure.argument is None else f"count({measure.argument})")


def summed(measure: Measure) -> Field:
    """The sum of the argument."""
    type_ = _sum_type(measure.argument_type or "")
    exact = (
        f"cast(({measure.argument}) as {type_})" if type_ != "double" else f"({measure.argument})"
    )
    return added(type_, f"sum({exact})")


def _sum_type(argument_type: str) -> str:
    """Exact for integers and decimals; one digit is left free so that Spark's addition keeps the
    scale."""
    if argument_type in INTEGERS:
        return "decimal(37,0)"
    if known := digits(argument_type):
        return f"decimal({min(37, known[0] + 18)},{known[1]})"
    return "double"
