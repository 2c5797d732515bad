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
from headgate.declaration.names import chosen, nearest
from headgate.declaration.quantities import parse_duration
from headgate.declaration.reading.document import Broken, Node, YamlScalar, YamlSequence
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
_WHOLE = re.compile(r"[-+]?[0-9]{1,38}")
_NUMBER = re.compile(r"[-+]?\d+(\.\d+)?([eE][-+]?\d{1,4})?", re.ASCII)
_MOST_DIGITS = 38
_DIGITS_OF_BIGINT = 19


@dataclass(frozen=True)
class RuleArgument:
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


def literal(written: str, type_: DataType) -> str:
    """A value, as it is written, as an SQL literal to be compared with a column of a type. Raises
    Invalid if it cannot be compared with such a column."""
    if type_ == STRING:
        return text_literal(written)
    if type_ in (DATE, TIMESTAMP):
        return f"{type_} {text_literal(written)}"
    if type_ == BOOLEAN and truth(written) is not None:
        return written.lower()
    if is_number(type_) and _NUMBER.fullmatch(written):
        return _number_literal(written, type_)
    what = with_article(type_)
    raise Invalid(f"{written!r} is not {what}, which is the type of the column")


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


def truth(written: str) -> bool | None:
    """A value, as it is written, as true or false; None if it is neither."""
    return {"true": True, "false": False}.get(written.lower())


def number(value: object) -> float | None:
    """A plain value as a number; None if it is not a number."""
    return float(str(value)) if _NUMBER.fullmatch(str(value)) else None


def _written(node: Node, what: str) -> str:
    """A value as it is written. Its column decides what it means, and not YAML: for texts, 01067 is
    not 1067, and true is a word."""
    if isinstance(node, Broken):
        raise Unresolved(what)
    if isinstance(node, YamlScalar) and node.value is not None:
        return node.text
    found = "null" if isinstance(node, YamlScalar) else "a list or a map"
    raise Invalid(f"must be {what}, not {found}; quote it if it is a text")


def _items(node: Node, what: str) -> tuple[Node, ...]:
    if isinstance(node, Broken):
        raise Unresolved(what)
    if not isinstance(node, YamlSequence) or not node.items:
        raise Invalid(f"must be a list of {what}")
    return node.items


def _column(node: Node, argument: RuleArgument, scope: Scope) -> str:
    name = _written(node, "the name of a column")
    if name not in scope:
        raise Invalid(f"there is no column {name!r}", nearest(name, scope))
    if scope[name] is None:
        raise Unresolved(name)
    return name


def _columns(node: Node, argument: RuleArgument, scope: Scope) -> list[str]:
    names = [_column(item, argument, scope) for item in _items(node, "columns, such as [a, b]")]
    if len(set(names)) < max(2, len(names)):
        raise Invalid("must be two different columns or more")
    return names


def _value(node: Node, argument: RuleArgument, scope: Scope) -> str:
    return _written(node, "a value")


def _values(node: Node, argument: RuleArgument, scope: Scope) -> list[str]:
    return [_written(item, "a value") for item in _items(node, "values, such as [a, b]")]


def _pairs(node: Node, argument: RuleArgument, scope: Scope) -> list[list[str]]:
    pairs = [_values(item, argument, scope) for item in _items(node, "pairs, such as [[a, b]]")]
    if any(len(pair) != 2 for pair in pairs):
        raise Invalid("must be a list of pairs, such as [[a, b]]")
    return pairs


def _length(node: Node, argument: RuleArgument, scope: Scope) -> int:
    written = _written(node, "a whole number")
    value = plain_number(written) if number(written) is not None else None
    if not isinstance(value, int) or value < 0:
        raise Invalid(f"must be a whole number from 0 on, not {written!r}")
    return value


def _regex(node: Node, argument: RuleArgument, scope: Scope) -> str:
    return _written(node, "a regular expression")


def _regexes(node: Node, argument: RuleArgument, scope: Scope) -> list[str]:
    return [_regex(item, argument, scope) for item in _items(node, "regular expressions")]


def _flag(node: Node, argument: RuleArgument, scope: Scope) -> bool:
    written = _written(node, "true or false")
    if (value := truth(written)) is None:
        raise Invalid(f"must be true or false, not {written!r}")
    return value


def _choice(node: Node, argument: RuleArgument, scope: Scope) -> str:
    return chosen(_written(node, "one value"), argument.choices)


def _number(node: Node, argument: RuleArgument, scope: Scope) -> int | float | str:
    written = _written(node, "a number")
    if number(written) is None:
        raise Invalid(f"must be a number, not {written!r}")
    return plain_number(written)


def plain_number(text: str) -> int | float | str:
    """A number as an int or a float; as its text if no float is exactly equal."""
    if _WHOLE.fullmatch(text):
        return int(text)
    found = float(text)
    if not math.isfinite(found):
        raise Invalid(f"{text} is too large a number")
    return found if Decimal(repr(found)) == Decimal(text) else text


def _share(node: Node, argument: RuleArgument, scope: Scope) -> float:
    value = float(_number(node, argument, scope))
    if not 0 <= value <= 1:
        raise Invalid(f"must be a share of the rows between 0 and 1, not {value:g}")
    return value


def _moment(node: Node, argument: RuleArgument, scope: Scope) -> str | int | float:
    """A number, a time, or a time before the validation: ``now - 10 minutes``."""
    written = _written(node, "a number or a time")
    if found := BEFORE_NOW.fullmatch(written):
        if parse_duration(found[1]) > _MOST_BEFORE:
            raise Invalid(f"{written!r} is before the year 1")
        return written
    return plain_number(written) if number(written) is not None else written


def _silver(node: Node, argument: RuleArgument, scope: Scope) -> str:
    """An expression that gives a number for each row of the silver table, whose columns are
    ``scope``."""
    found = parse_expression(_written(node, "an expression over silver"), scope)
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

    def __init__(self, doc: str, read: Callable[[Node, RuleArgument, Scope], Any]) -> None:
        self.doc, self.read = doc, read
