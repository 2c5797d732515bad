"""Arguments of expectations: their kinds, how they are read from YAML, and as SQL literals."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.expression import parse_expression
from headgate.declaration.expressions.inference import Scope, Unresolved
from headgate.declaration.expressions.typed import with_article
from headgate.declaration.nearest import chosen, nearest
from headgate.declaration.quantities import parse_duration
from headgate.declaration.reading.document import Broken, Node, Scalar, Sequence
from headgate.declaration.types import (
    BOOLEAN,
    DATE,
    STRING,
    TIMESTAMP,
    DataType,
    is_decimal,
    is_floating,
    is_number,
)

BEFORE_NOW = re.compile(r"now - (.+)")
"""A ``moment`` that is a time before the validation."""
# From any time from 2000 on, a longer time leads to before the year 1.
_MOST_BEFORE = datetime(2000, 1, 1) - datetime.min  # noqa: DTZ001, DTZ901
_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d{1,4})?", re.ASCII)
_MOST_DIGITS = 38
_DIGITS_OF_BIGINT = 19


@dataclass(frozen=True)
class Argument:
    """An argument under the name that Great Expectations gives it. ``choices`` are the texts that
    a CHOICE takes."""

    name: str
    kind: ArgumentKind
    required: bool = False
    choices: tuple[str, ...] = ()


def named_columns(given: Mapping[str, Any]) -> list[str]:
    """The columns that the arguments of an expectation name."""
    columns = [str(given[key]) for key in ("column", "column_A", "column_B") if key in given]
    listed = given.get("column_list")
    return [*columns, *(map(str, listed) if isinstance(listed, list) else ())]


def literal(value: str | int | bool, type_: DataType) -> str:
    """A value as an SQL literal to be compared with a column of a type. Raises Invalid if it cannot
    be compared with such a column."""
    shown = str(value).lower() if isinstance(value, bool) else str(value)
    if type_ == STRING:
        return text_literal(shown)
    if type_ in (DATE, TIMESTAMP):
        return f"{type_} {text_literal(shown)}"
    if type_ == BOOLEAN and isinstance(value, bool):
        return shown
    if is_number(type_) and not isinstance(value, bool) and _NUMBER.fullmatch(shown):
        return _number_literal(shown, type_)
    what = with_article(type_)
    raise Invalid(f"{value!r} is not {what}, which is the type of the column")


def _number_literal(text: str, type_: DataType) -> str:
    """A number that Spark compares exactly with a column of whole numbers or decimals."""
    if not math.isfinite(float(text)):
        what = with_article(type_)
        raise Invalid(f"{text} is not {what}, which is the type of the column")
    if is_floating(type_):
        return text
    # With an exponent, it would be a double.
    plain = format(Decimal(text), "f") if "e" in text.lower() else text
    whole, _, fraction = plain.lstrip("+-0").partition(".")
    before, after = _DIGITS_OF_BIGINT, 0
    if is_decimal(type_):
        before, after = type_.precision - type_.scale, type_.scale
    if max(before, len(whole)) + max(after, len(fraction)) > _MOST_DIGITS:
        what = with_article(type_)
        raise Invalid(f"{text} has too many digits to be compared with {what}")
    return plain


def text_literal(text: str) -> str:
    """A text as an SQL literal."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def number(value: object) -> float | None:
    """A plain value as a number; None if it is not a number."""
    return float(str(value)) if _NUMBER.fullmatch(str(value)) else None


def _scalar(node: Node, what: str) -> str | int | bool:
    if isinstance(node, Broken):
        raise Unresolved(what)
    if not isinstance(node, Scalar) or node.value is None:
        raise Invalid(f"must be {what}")
    return node.value


def _items(node: Node, what: str) -> tuple[Node, ...]:
    if isinstance(node, Broken):
        raise Unresolved(what)
    if not isinstance(node, Sequence) or not node.items:
        raise Invalid(f"must be a list of {what}")
    return node.items


def _column(node: Node, argument: Argument, scope: Scope) -> str:
    name = str(_scalar(node, "the name of a column"))
    if name not in scope:
        raise Invalid(f"there is no column {name!r}", nearest(name, scope))
    if scope[name] is None:
        raise Unresolved(name)
    return name


def _columns(node: Node, argument: Argument, scope: Scope) -> list[str]:
    names = [_column(item, argument, scope) for item in _items(node, "columns, such as [a, b]")]
    if len(set(names)) < max(2, len(names)):
        raise Invalid("must be two different columns or more")
    return names


def _value(node: Node, argument: Argument, scope: Scope) -> str | int | bool:
    return _scalar(node, "a value")


def _values(node: Node, argument: Argument, scope: Scope) -> list[str | int | bool]:
    return [_scalar(item, "a value") for item in _items(node, "values, such as [a, b]")]


def _pairs(node: Node, argument: Argument, scope: Scope) -> list[list[str | int | bool]]:
    pairs = [_values(item, argument, scope) for item in _items(node, "pairs, such as [[a, b]]")]
    if any(len(pair) != 2 for pair in pairs):
        raise Invalid("must be a list of pairs, such as [[a, b]]")
    return pairs


def _length(node: Node, argument: Argument, scope: Scope) -> int:
    value = _scalar(node, "a whole number")
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Invalid(f"must be a whole number from 0 on, not {value!r}")
    return value


def _regex(node: Node, argument: Argument, scope: Scope) -> str:
    return str(_scalar(node, "a regular expression"))


def _regexes(node: Node, argument: Argument, scope: Scope) -> list[str]:
    return [_regex(item, argument, scope) for item in _items(node, "regular expressions")]


def _flag(node: Node, argument: Argument, scope: Scope) -> bool:
    value = _scalar(node, "true or false")
    if not isinstance(value, bool):
        raise Invalid(f"must be true or false, not {value!r}")
    return value


def _choice(node: Node, argument: Argument, scope: Scope) -> str:
    return chosen(str(_scalar(node, "one value")), argument.choices)


def _number(node: Node, argument: Argument, scope: Scope) -> int | float | str:
    value = _scalar(node, "a number")
    if isinstance(value, bool) or number(value) is None:
        raise Invalid(f"must be a number, not {value!r}")
    return value if isinstance(value, int) else _exactly(value)


def _exactly(text: str) -> float | str:
    """A number as a float; as its text if no float is exactly equal."""
    found = float(text)
    if not math.isfinite(found):
        raise Invalid(f"{text} is too large a number")
    return found if Decimal(repr(found)) == Decimal(text) else text


def _share(node: Node, argument: Argument, scope: Scope) -> float:
    value = float(_number(node, argument, scope))
    if not 0 <= value <= 1:
        raise Invalid(f"must be a share of the rows between 0 and 1, not {value:g}")
    return value


def _moment(node: Node, argument: Argument, scope: Scope) -> str | int | float:
    """A number, a time, or a time before the validation: ``now - 10 minutes``."""
    value = _scalar(node, "a value")
    if isinstance(value, bool):
        raise Invalid(f"must be a number or a time, not {value!r}")
    if isinstance(value, str) and (found := BEFORE_NOW.fullmatch(value)):
        if parse_duration(found[1]) > _MOST_BEFORE:
            raise Invalid(f"{value!r} is before the year 1")
        return value
    return _exactly(value) if isinstance(value, str) and number(value) is not None else value


def _silver(node: Node, argument: Argument, scope: Scope) -> str:
    """An expression that gives a number for each row of the silver table, whose columns are
    ``scope``."""
    found = parse_expression(str(_scalar(node, "an expression over silver")), scope)
    if not is_number(found.type):
        raise Invalid(f"must be a number, not {with_article(found.type)}")
    return found.text


class ArgumentKind(Enum):
    """What an argument is: its name in the reference, and how a plain value is read from a node.
    Reading raises Invalid if the node has another form, or names a column that ``scope`` does not
    have; Unresolved if the error is reported already."""

    COLUMN = ("a column", _column)
    COLUMNS = ("columns", _columns)
    VALUE = ("a value", _value)
    VALUES = ("a list of values", _values)
    PAIRS = ("a list of pairs", _pairs)
    LENGTH = ("a whole number", _length)
    REGEX = ("a regular expression", _regex)
    REGEXES = ("regular expressions", _regexes)
    FLAG = ("`true` or `false`", _flag)
    CHOICE = ("one of some texts", _choice)
    NUMBER = ("a number", _number)
    SHARE = ("a share of the rows, from 0 to 1", _share)
    MOMENT = ("a number, a time, or `now - 10 minutes`", _moment)
    SILVER = ("an expression over the silver table", _silver)

    def __init__(self, doc: str, read: Callable[[Node, Argument, Scope], Any]) -> None:
        self.doc, self.read = doc, read
