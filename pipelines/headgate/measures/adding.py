"""Sums and counts, which several measures have in their states."""

from __future__ import annotations

from headgate.declaration.errors import Invalid
from headgate.declaration.measures import Field
from headgate.declaration.model import Measure
from headgate.declaration.types import (
    BIGINT,
    DOUBLE,
    INTEGRALS,
    DataType,
    Decimal,
    is_decimal,
    is_number,
)

_ADD = "case when {old} is null then {new} when {new} is null then {old} else {old} + {new} end"


def require_number(name: str, argument: DataType) -> None:
    """Raises Invalid if the argument is not a number."""
    if not is_number(argument):
        raise Invalid(f"{name}() takes a number, not a {argument}")


def cast(expression: str, type_: DataType) -> str:
    return f"cast({expression} as {type_})"


def added(type_: DataType, partial: str) -> Field:
    return Field(type_, cast(partial, type_), cast(_ADD, type_))


def counted(measure: Measure) -> Field:
    """The number of rows whose argument is not null, or of all rows where there is none."""
    return added(BIGINT, "count(*)" if measure.argument is None else f"count({measure.argument})")


def summed(measure: Measure) -> Field:
    """The sum of the argument."""
    type_ = _sum_type(measure.argument_type)
    exact = f"({measure.argument})" if type_ == DOUBLE else cast(f"({measure.argument})", type_)
    return added(type_, f"sum({exact})")


def _sum_type(argument: DataType | None) -> DataType:
    """Exact for integers and decimals. One digit stays free, so that Spark's addition keeps the
    scale."""
    if argument in INTEGRALS:
        return Decimal(37, 0)
    if is_decimal(argument):
        return Decimal(min(37, argument.precision + 18), argument.scale)
    return DOUBLE
