"""Reads single values: what each kind of key takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import TypeVar

from headgate.declaration.errors import Invalid
from headgate.declaration.kafka.values import check_pattern, check_topic, parse_servers, parse_start
from headgate.declaration.keys.key import Key
from headgate.declaration.names import check_column, check_name, check_path, chosen, nearest
from headgate.declaration.quantities import (
    format_duration,
    format_size,
    parse_duration,
    parse_share,
    parse_size,
)
from headgate.declaration.type_parser import parse_type
from headgate.declaration.types import DataType

Quantity = TypeVar("Quantity", int, timedelta)
Read = Callable[[str, object, Key], object]
"""Reads a single value: its text, its value in YAML, and its key. Raises Invalid."""


def _text(text: str, value: object, key: Key) -> str:
    if not text.strip():
        raise Invalid("is empty")
    return text


def _checked(what: str, check: Callable[[str], None]) -> Read:
    def read(text: str, value: object, _: Key) -> str:
        if not isinstance(value, str):
            raise Invalid(f"must be {what}, not {text}")
        check(text)
        return text

    return read


def _field(text: str, value: object, key: Key) -> str:
    return text


def _choice(text: str, value: object, key: Key) -> str:
    return chosen(text, key.choices)


def _boolean(text: str, value: object, key: Key) -> bool:
    if not isinstance(value, bool):
        like = text.lower() in ("yes", "on", "y", "true", "1")
        raise Invalid(f"must be true or false, not {text!r}", "true" if like else "false")
    return value


def _integer(text: str, value: object, key: Key) -> int:
    stripped = text.strip()
    if isinstance(value, bool) or not re.fullmatch(r"[-+]?\d{1,30}", stripped):
        raise Invalid(f"must be a whole number, not {text!r}")
    return _bounded(int(stripped), key, str)


def _size(text: str, value: object, key: Key) -> int:
    return _bounded(parse_size(text), key, format_size)


def _duration(text: str, value: object, key: Key) -> timedelta | str:
    if text in key.choices:
        return text
    if key.choices and not any(map(str.isdigit, text)):
        words = " or ".join(key.choices)
        raise Invalid(f"must be a duration or {words}, not {text!r}", nearest(text, key.choices))
    return _bounded(parse_duration(text), key, format_duration)


def _delimiter(text: str, value: object, key: Key) -> str:
    if len(text) != 1:
        raise Invalid("must be one character")
    if text in '"\r\n':
        what = "the quote character" if text == '"' else "the end of a line"
        raise Invalid(f"must not be {what}, which CSV reserves")
    return text


def _share(text: str, value: object, key: Key) -> float:
    return parse_share(text)


def _type(text: str, value: object, key: Key) -> DataType:
    return parse_type(text)


def _servers(text: str, value: object, key: Key) -> str:
    return parse_servers(_text(text, value, key))


def _topic(text: str, value: object, key: Key) -> str:
    check_topic(text)
    return text


def _pattern(text: str, value: object, key: Key) -> str:
    check_pattern(_text(text, value, key))
    return text


def _start(text: str, value: object, key: Key) -> str | datetime:
    return parse_start(text)


def _bounded(number: Quantity, key: Key, show: Callable[[Quantity], str]) -> Quantity:
    if key.low is not None and number < key.low:
        raise Invalid(f"{show(number)} is too little: at least {show(key.low)}")
    if key.high is not None and number > key.high:
        raise Invalid(f"{show(number)} is too much: at most {show(key.high)}")
    return number


SCALARS: Mapping[str, Read] = {
    "text": _text,
    "name": _checked("a name", check_name),
    "column": _checked("the name of a column", check_column),
    "path": _checked("the name of a column", check_path),
    "field": _field,
    "choice": _choice,
    "boolean": _boolean,
    "integer": _integer,
    "size": _size,
    "duration": _duration,
    "delimiter": _delimiter,
    "share": _share,
    "type": _type,
    "expression": _text,
    "servers": _servers,
    "topic": _topic,
    "pattern": _pattern,
    "start": _start,
}
"""Readers of single values by the kinds of keys."""
