"""The Spark SQL types a declaration can use, as texts, and how Spark combines them.

A type is the text Spark itself prints (``decimal(18,2)``). Combination follows Spark 4.2 with
``spark.sql.ansi.enabled=false`` and otherwise default settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from headgate.declaration.errors import Invalid
from headgate.declaration.nearest import nearest

INTEGRALS = ("tinyint", "smallint", "int", "bigint")
NUMBERS = (*INTEGRALS, "float", "double")
SCALARS = ("string", "boolean", *NUMBERS, "date", "timestamp")
MAX_PRECISION = 38
# Spark keeps at least this many fraction digits when a result does not fit 38 digits.
_MIN_ADJUSTED_SCALE = 6

# The null literal's type: fits everywhere, but a column cannot have it.
VOID = "void"

SYNONYMS = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
SYNONYMS |= {"real": "float", "bool": "boolean"}
_LIKELY = {"text": "string", "str": "string", "varchar": "string", "char": "string"}
_LIKELY |= {"datetime": "timestamp", "number": "decimal(18,2)", "numeric": "decimal(18,2)"}
_LIKELY |= {"decimal": "decimal(18,2)", "int64": "bigint", "int32": "int", "float64": "double"}
_LIKELY |= {"timestamp_ntz": "timestamp", "timestamp_ltz": "timestamp"}
_DECIMAL = re.compile(r"(?:decimal|dec|numeric)\s*\(\s*(\d{1,3})\s*(?:,\s*(\d{1,3})\s*)?\)")
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}


def parse_type(text: str) -> str:
    """The normal form of a declared type. Raises Invalid with the nearest supported one."""
    lower = text.strip().lower()
    lower = SYNONYMS.get(lower, lower)
    if lower in SCALARS:
        return lower
    found = _DECIMAL.fullmatch(lower)
    if found:
        precision, scale = int(found[1]), int(found[2] or 0)
        if not 1 <= precision <= MAX_PRECISION or scale > precision:
            raise Invalid(f"{lower} is out of range: 1 <= precision <= 38, 0 <= scale <= precision")
        return decimal(precision, scale)
    if re.match(r"(array|map|struct|variant|object)\b", lower):
        raise Invalid(
            f"the type {text} comes next; today, leave the field out, write unknown_fields: "
            "rescue, and take parts of it in silver with get_json_object(_rescued, '$.field.part')"
        )
    base = lower.split("(")[0].strip()
    if base == "decimal":
        raise Invalid(f"{text!r} needs a precision and a scale", _LIKELY[base])
    raise Invalid(f"{text!r} is not a supported type", _LIKELY.get(base) or nearest(base, SCALARS))


def decimal(precision: int, scale: int) -> str:
    return f"decimal({precision},{scale})"


def digits(type_: str) -> tuple[int, int] | None:
    """Precision and scale: of a decimal, or of the decimal that holds any value of an integer."""
    if type_ in _DIGITS:
        return _DIGITS[type_], 0
    if type_.startswith("decimal("):
        precision, scale = type_[8:-1].split(",")
        return int(precision), int(scale)
    return None


def is_decimal(type_: str) -> bool:
    return type_.startswith("decimal(")


def is_number(type_: str) -> bool:
    return type_ in NUMBERS or is_decimal(type_)


def is_time(type_: str) -> bool:
    return type_ in ("date", "timestamp")


def comparable(left: str, right: str) -> bool:
    """Whether `=` and `<` mean the same for both without a hidden cast of text."""
    if VOID in (left, right) or left == right:
        return True
    return (is_number(left) and is_number(right)) or (is_time(left) and is_time(right))


def common_type(types: Iterable[str]) -> str | None:
    """The type CASE, COALESCE, GREATEST and the like give to operands of these types; None where
    only a cast of text would bring them together."""
    result = VOID
    for type_ in types:
        pair = _common_pair(result, type_)
        if pair is None:
            return None
        result = pair
    return result


def _common_pair(left: str, right: str) -> str | None:
    if VOID in (left, right):
        return right if left == VOID else left
    if left == right:
        return left
    if is_time(left) and is_time(right):
        return "timestamp"
    if not (is_number(left) and is_number(right)):
        return None
    if left in NUMBERS and right in NUMBERS:
        return max(left, right, key=NUMBERS.index)
    first, second = digits(left), digits(right)
    if first is None or second is None:
        return "double"
    scale = max(first[1], second[1])
    precision = max(first[0] - first[1], second[0] - second[1]) + scale
    # Beyond 38 digits Spark 4 gives up fraction digits, not integral ones.
    lost = max(0, precision - MAX_PRECISION)
    return decimal(precision - lost, max(0, scale - lost))


def arithmetic_type(operator: str, left: str, right: str) -> str:
    """The type of ``left operator right`` for two numbers; operator is one of ``+ - * / % div``."""
    if operator == "div":
        return "bigint"
    if left in NUMBERS and right in NUMBERS:
        return "double" if operator == "/" else max(left, right, key=NUMBERS.index)
    first, second = digits(left), digits(right)
    if first is None or second is None:
        return "double"
    return _decimal_result(operator, first, second)


def _decimal_result(operator: str, left: tuple[int, int], right: tuple[int, int]) -> str:
    (p1, s1), (p2, s2) = left, right
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


def _adjusted(precision: int, scale: int) -> str:
    if precision <= MAX_PRECISION:
        return decimal(precision, scale)
    integral = precision - scale
    kept = min(scale, _MIN_ADJUSTED_SCALE)
    return decimal(MAX_PRECISION, max(MAX_PRECISION - integral, kept))


def rounded_type(type_: str, scale: int) -> str:
    """The type of ``round(value, scale)``."""
    found = digits(type_) if is_decimal(type_) else None
    if found is None:
        return type_
    # Rounding may carry into one more integral digit.
    integral = found[0] - found[1] + 1
    if scale < 0:
        return decimal(min(MAX_PRECISION, max(integral, 1 - scale)), 0)
    kept = min(found[1], scale)
    return decimal(min(MAX_PRECISION, integral + kept), kept)


def whole_type(type_: str) -> str:
    """The type of ``ceil(value)`` and ``floor(value)``."""
    found = digits(type_) if is_decimal(type_) else None
    # One digit more than Spark's where there is no fraction: tables are declared by this type.
    return decimal(min(MAX_PRECISION, found[0] - found[1] + 1), 0) if found else "bigint"
