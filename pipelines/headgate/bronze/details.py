"""The detail of a quarantined record, in words: the expected form and the value."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from headgate.bronze.decoding.documents import in_utf8
from headgate.declaration.model import EventTime
from headgate.declaration.types import DATE, TIMESTAMP, DataType

_SHOWN = 80  # characters of a value
_NAMED = 5  # fields

_ISO = "ISO 8601 with an offset, such as 2026-01-31T12:00:00Z or 2026-01-31 12:00:00+01:00"
_TIME = {
    "iso": _ISO,
    "epoch_seconds": "a whole number of seconds since 1970 UTC, in the years 10 to 9989",
    "epoch_millis": "a whole number of milliseconds since 1970 UTC, in the years 10 to 9989",
}
NOT_EARLY = "in the year 10 or later"
"""The expected form of an event time that was read but is too early."""
_TYPE: dict[DataType, str] = {TIMESTAMP: _ISO, DATE: "a date such as 2026-01-31"}


def time_form(rule: EventTime) -> str:
    """The expected form of an event time."""
    return _TIME.get(rule.format, f"a time of the form {rule.format}")


def type_form(type_: DataType) -> str:
    """The expected form of a value of a declared type."""
    return _TYPE.get(type_, f"of type {type_}")


def mismatch(column: str, value: str, expected: str) -> str:
    """Says that a column does not have the expected form. ``value`` is JSON text."""
    shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}..."
    return in_utf8(f"{column} is not {expected}: {shown}")


def undeclared(names: Iterable[str]) -> str:
    """The first few fields that no schema declares."""
    first = list(islice(names, _NAMED + 1))
    more = ", ..." if len(first) > _NAMED else ""
    return in_utf8(f"not declared: {', '.join(name[:_SHOWN] for name in first[:_NAMED])}{more}")
