"""How Spark combines types: which types `=` compares, and the result types of CASE, arithmetic and
rounding.

These are the rules of Spark 4.2 with ``spark.sql.ansi.enabled=false`` and otherwise default
settings. sqlglot's inference does not know the precision and scale of a result.
"""

from __future__ import annotations

from collections.abc import Iterable

from headgate.declaration.types import (
    BIGINT,
    DOUBLE,
    FLOAT,
    INT,
    INTEGRALS,
    MAX_PRECISION,
    SMALLINT,
    TIMESTAMP,
    TINYINT,
    VOID,
    DataType,
    Decimal,
    has_map,
    is_decimal,
    is_number,
    is_time,
)

# From the narrowest to the widest.
_NUMBERS: tuple[DataType, ...] = (*INTEGRALS, FLOAT, DOUBLE)
_AS_DECIMAL: dict[DataType, Decimal] = {
    TINYINT: Decimal(3, 0),
    SMALLINT: Decimal(5, 0),
    INT: Decimal(10, 0),
    BIGINT: Decimal(20, 0),
}
# Spark keeps at least this many fraction digits when a result does not fit 38 digits.
_MIN_ADJUSTED_SCALE = 6


def comparable(left: DataType, right: DataType) -> bool:
    """Whether `=` and `<` compare values of both types without an implicit cast of text."""
    if VOID in (left, right):
        return True
    if left == right:
        return not has_map(left)
    return (is_number(left) and is_number(right)) or (is_time(left) and is_time(right))


def common_type(types: Iterable[DataType]) -> DataType | None:
    """The type that CASE, COALESCE, GREATEST and the like give to operands of these types; None if
    they have no common type without an implicit cast to text."""
    result: DataType = VOID
    for type_ in types:
        pair = _common_pair(result, type_)
        if pair is None:
            return None
        result = pair
    return result


def _common_pair(left: DataType, right: DataType) -> DataType | None:
    if VOID in (left, right):
        return right if left == VOID else left
    if left == right:
        return left
    if is_time(left) and is_time(right):
        return TIMESTAMP
    if not (is_number(left) and is_number(right)):
        return None
    if left in _NUMBERS and right in _NUMBERS:
        return max(left, right, key=_NUMBERS.index)
    first, second = _as_decimal(left), _as_decimal(right)
    if first is None or second is None:
        return DOUBLE
    scale = max(first.scale, second.scale)
    precision = max(first.precision - first.scale, second.precision - second.scale) + scale
    # Beyond 38 digits, Spark 4 drops fraction digits, not integral ones.
    lost = max(0, precision - MAX_PRECISION)
    return Decimal(precision - lost, max(0, scale - lost))


def arithmetic_type(operator: str, left: DataType, right: DataType) -> DataType:
    """The type of ``left operator right`` for two numbers; operator is one of ``+ - * / % div``."""
    if operator == "div":
        return BIGINT
    if left in _NUMBERS and right in _NUMBERS:
        return DOUBLE if operator == "/" else max(left, right, key=_NUMBERS.index)
    first, second = _as_decimal(left), _as_decimal(right)
    if first is None or second is None:
        return DOUBLE
    return _decimal_result(operator, first, second)


def _as_decimal(type_: DataType) -> Decimal | None:
    """The type itself if it is a decimal; for an integer, the decimal that holds all its values."""
    return type_ if is_decimal(type_) else _AS_DECIMAL.get(type_)


def _decimal_result(operator: str, left: Decimal, right: Decimal) -> Decimal:
    p1, s1, p2, s2 = left.precision, left.scale, right.precision, right.scale
    if operator in "+-":
        scale = max(s1, s2)
        return _adjusted(max(p1 - s1, p2 - s2) + scale + 1, scale)
    if operator == "*":
        return _adjusted(p1 + p2 + 1, s1 + s2)
    if operator == "/":
        scale = max(_MIN_ADJUSTED_SCALE, s1 + p2 + 1)
        return _adjusted(p1 - s1 + s2 + scale, scale)
    scale = max(s1, s2)
    return _adjusted(min(p1 - s1, p2 - s2) + scale, scale)


def _adjusted(precision: int, scale: int) -> Decimal:
    if precision <= MAX_PRECISION:
        return Decimal(precision, scale)
    integral = precision - scale
    kept = min(scale, _MIN_ADJUSTED_SCALE)
    return Decimal(MAX_PRECISION, max(MAX_PRECISION - integral, kept))


def rounded_type(type_: DataType, scale: int) -> DataType:
    """The type of ``round(value, scale)``."""
    if not isinstance(type_, Decimal):
        return type_
    # Rounding may carry into one more integral digit.
    integral = type_.precision - type_.scale + 1
    if scale < 0:
        return Decimal(min(MAX_PRECISION, max(integral, 1 - scale)), 0)
    kept = min(type_.scale, scale)
    return Decimal(min(MAX_PRECISION, integral + kept), kept)


def whole_type(type_: DataType) -> DataType:
    """The type of ``ceil(value)`` and ``floor(value)``."""
    if is_decimal(type_):
        # One digit more than Spark's type if the scale is 0: tables are declared with this type.
        return Decimal(min(MAX_PRECISION, type_.precision - type_.scale + 1), 0)
    return BIGINT
