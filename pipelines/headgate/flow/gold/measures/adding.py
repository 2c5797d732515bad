"""Sums and counts, which several measures have in their states.

A sum of decimals of up to ``_SHORT`` digits is one number. A sum of longer decimals is two numbers,
so that no partial sum is too long, whatever the order of rows: ``sum`` adds up the last ``_LOW``
digits of each value and ``high`` the digits before them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from headgate.declaration.contracts.measure import StateField
from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.typed import with_article
from headgate.declaration.model import Measure
from headgate.declaration.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGRALS,
    DataType,
    Decimal,
    is_decimal,
    is_number,
)

_SHORT = 25
"""With decimals of this many digits, a sum has room for 10^12 values."""
LONGEST = 37
"""The digits of a sum. One of Spark's 38 stays free, so that Spark's addition keeps the scale."""
_LOW = 20
_ADD = "case when {old} is null then {new} when {new} is null then {old} else {old} + {new} end"


def require_number(name: str, argument: DataType) -> None:
    """Raises Invalid if the argument is not a number."""
    if not is_number(argument):
        raise Invalid(f"{name}() takes a number, not {with_article(argument)}")


def require_condition(name: str, argument: DataType) -> None:
    """Raises Invalid if the argument is not a condition."""
    if argument != BOOLEAN:
        raise Invalid(f"{name}() takes a condition, not {with_article(argument)}")


def require_summable(name: str, argument: DataType) -> None:
    """Raises Invalid if the argument is not a number that can be added up."""
    require_number(name, argument)
    if is_decimal(argument) and argument.scale > LONGEST:
        raise Invalid(f"{name}() takes no {argument}; write cast(... as decimal(38,{LONGEST}))")


def cast(expression: str, type_: DataType) -> str:
    return f"cast({expression} as {type_})"


def added(type_: DataType, partial: str) -> StateField:
    return StateField(type_, cast(partial, type_), cast(_ADD, type_))


def counted(measure: Measure) -> StateField:
    """The number of rows whose argument is not null; of all rows that count, for ``name(*)``."""
    return added(BIGINT, f"count({measure.argument()})")


def summed(measure: Measure) -> Mapping[str, StateField]:
    """The fields of the sum of the argument."""
    given, value = measure.arguments[0].type, f"({measure.argument()})"
    type_ = _sum_type(given)
    if not _is_long(given):
        exact = value if type_ == DOUBLE else cast(value, type_)
        return {"sum": added(type_, f"sum({exact})")}
    unit, whole = cast(f"'1E{_LOW - given.scale}'", given), Decimal(LONGEST, 0)
    low, high = cast(f"{value} % {unit}", type_), cast(f"{value} div {unit}", whole)
    return {"sum": added(type_, f"sum({low})"), "high": added(whole, f"sum({high})")}


def total(measure: Measure) -> str:
    """The sum, computed from its fields; null if it does not fit ``_sum_type``."""
    given = measure.arguments[0].type
    if not _is_long(given):
        return "{sum}"
    type_, over = _sum_type(given), given.scale - _LOW
    # Short numbers, so that the product keeps its scale.
    unit = cast(f"'1E{-over}'", Decimal(abs(over) + 1, max(0, over)))
    high = f"{cast('{high}', Decimal(LONGEST - _LOW, 0))} * {unit}"
    return cast(f"{cast(high, type_)} + {{sum}}", type_)


def _sum_type(argument: DataType) -> DataType:
    """Exact for integers and decimals."""
    if argument in INTEGRALS:
        return Decimal(LONGEST, 0)
    if is_decimal(argument):
        return Decimal(min(LONGEST, argument.precision + 18), argument.scale)
    return DOUBLE


def _is_long(type_: DataType) -> TypeGuard[Decimal]:
    return is_decimal(type_) and type_.precision > _SHORT
