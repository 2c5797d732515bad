"""Literal arguments that decide whether a call can fail: checked here, before Spark sees them."""

from __future__ import annotations

import math
import re
import zoneinfo
from collections.abc import Callable
from datetime import date, datetime

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.patterns import (
    check_print_pattern,
    check_read_pattern,
    check_regex,
)
from headgate.declaration.expressions.typed import NotKnown
from headgate.declaration.names import nearest
from headgate.declaration.types import TIMESTAMP, DataType

TIME_UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND")
EXTRACTED = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DAYOFWEEK", "DOY", "HOUR", "MINUTE")
INTERVAL = "an interval is a whole number and one unit, such as: interval 1 hour"
# A replacement multiplies what a hostile producer sends; 16 characters keep it below 2 GB.
_MAX_REPLACEMENT = 16
_NOT_IN_JAVA = ("Factory", "ROC", "localtime")
_OFFSET = r"(Z|[+-](0\d|1[0-7]):[0-5]\d|[+-]18:00)"
_WHOLE = re.compile(r"-?[0-9]{1,20}")
_SPAN = re.compile(r"\s*(interval\s+)?[-+]?\s*[0-9]{1,20}\s+[a-z]+\s*", re.IGNORECASE)
_JSON_PATH = re.compile(r"\$(\.[A-Za-z_][A-Za-z0-9_]*|\[\d{1,4}\])*")


def check_literal(kind: str, text: str) -> None:
    """Raises Invalid unless ``text`` is valid for an argument of this kind."""
    _CHECKS[kind](text)


def check_zone(text: str) -> None:
    """Raises Invalid unless ``text`` is a time zone."""
    zones = zoneinfo.available_timezones()
    if text not in zones:
        raise Invalid(f"{text!r} is not an IANA time zone", nearest(text, zones))


def check_time_literal(type_: DataType, text: str) -> None:
    """Raises Invalid unless a date or timestamp literal is ISO: Spark would also read 'now' and the
    like."""
    shape = r"\d{4}-\d\d-\d\d"
    if type_ == TIMESTAMP:
        shape += rf"([T ]\d\d:\d\d:\d\d(\.\d{{1,6}})?{_OFFSET}?)?"
    try:
        if not re.fullmatch(shape, text):
            raise ValueError(text)
        datetime.fromisoformat(text) if type_ == TIMESTAMP else date.fromisoformat(text)
    except ValueError:
        example = "2026-01-31 12:00:00" if type_ == TIMESTAMP else "2026-01-31"
        raise Invalid(f"{text!r} is not a {type_}; write it like '{example}'") from None


def check_double(text: str) -> None:
    """Raises Invalid if a number with an exponent or the suffix D is none that Spark reads."""
    if not math.isfinite(float(text)) or re.search(r"[eE][+-]?\d{5}", text):
        raise Invalid(f"the number {text} is outside the range of a double")


def check_interval(text: str, *, has_unit: bool) -> None:
    """Raises Invalid unless Spark reads the text after INTERVAL: a whole number, with its unit if
    none follows the text."""
    if not (_WHOLE if has_unit else _SPAN).fullmatch(text):
        raise Invalid(INTERVAL)


def _spark_zone(text: str) -> None:
    check_zone(text)
    if text in _NOT_IN_JAVA:
        raise Invalid(f"{text!r} is not a time zone of Java, which Spark uses")


def _short(text: str) -> None:
    if len(text) > _MAX_REPLACEMENT:
        raise NotKnown(f"a replacement has at most {_MAX_REPLACEMENT} characters")


def _replacement(text: str) -> None:
    _short(text)
    if "\\" in text or "$" in text:
        raise NotKnown("a replacement cannot hold a backslash or a $")


def _path(text: str) -> None:
    if not _JSON_PATH.fullmatch(text):
        raise NotKnown(f"{text!r} is not a JSON path such as '$.a.b[0]'")


def _key(text: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", text):
        raise NotKnown(f"{text!r} is not a plain key of letters, digits, _ and -")


def _like(text: str) -> None:
    escapes = iter(text)
    if any(c == "\\" and next(escapes, "") not in ("%", "_", "\\") for c in escapes):
        raise Invalid(f"in {text!r}, a backslash may only precede %, _ or another backslash")


_CHECKS: dict[str, Callable[[str], None]] = {
    "short": _short,
    "replacement": _replacement,
    "like": _like,
    "path": _path,
    "key": _key,
    "zone": _spark_zone,
    "regex": check_regex,
    "format": check_print_pattern,
    "parse": check_read_pattern,
}
LITERAL_KINDS = frozenset(_CHECKS)
