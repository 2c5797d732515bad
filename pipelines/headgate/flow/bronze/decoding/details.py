"""The detail of a quarantined record, in words: the expected form and the value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import islice

from headgate.declaration.model import TimeForm
from headgate.declaration.types import DATE, TIMESTAMP, DataType
from headgate.flow.bronze.decoding.documents import in_utf8
from headgate.flow.bronze.decoding.event_times import EPOCHS, is_epoch
from headgate.flow.bronze.decoding.values import instant_reader

_SHOWN = 80  # characters of a value
_NAMED = 5  # fields

_ISO = "ISO 8601 with an offset, such as 2026-01-31T12:00:00Z or 2026-01-31 12:00:00+01:00"
_LOCAL_ISO = "ISO 8601, such as 2026-01-31T12:00:00 or 2026-01-31 12:00:00+01:00"
_UNITS = {
    "epoch_seconds": "seconds",
    "epoch_millis": "milliseconds",
    "epoch_micros": "microseconds",
    "epoch_nanos": "nanoseconds",
}
NOT_EARLY = "in the year 10 or later"
"""The expected form of an event time that was read but is too early."""


def time_form(times: TimeForm, number: str = "a number", years: str = "1 to 9999") -> str:
    """The expected form of a time. An epoch is a ``number`` of a unit, in some ``years``."""
    if times.format == "iso":
        return _LOCAL_ISO if times.zone else _ISO
    if unit := _UNITS.get(times.format):
        return f"{number} of {unit} since 1970 UTC, in the years {years}"
    return f"a time of the form {times.format}"


def type_form(type_: DataType, times: TimeForm) -> str:
    """The expected form of a value of a declared type, whose timestamps have the form ``times``."""
    if type_ == TIMESTAMP:
        return time_form(times)
    return "a date such as 2026-01-31" if type_ == DATE else f"of type {type_}"


def mismatch(column: str, value: str, expected: str, hint: str = "") -> str:
    """Says that a column does not have the expected form. ``value`` is JSON text."""
    shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}..."
    return in_utf8(f"{column} is not {expected}: {shown}{hint and f' ({hint})'}")


def is_missing(field: str) -> str:
    """Says that a record does not have a field that it needs, or null or an empty text in it."""
    return in_utf8(f"{field[:_SHOWN]} is missing or empty")


def undeclared(names: Iterable[str]) -> str:
    """The first few fields that no schema declares."""
    first = list(islice(names, _NAMED + 1))
    more = ", ..." if len(first) > _NAMED else ""
    return in_utf8(f"not declared: {', '.join(name[:_SHOWN] for name in first[:_NAMED])}{more}")


_FIRST, _LAST = 631_152_000_000_000, 4_102_444_800_000_000  # the years 1990 to 2099


def time_hint(value: object, times: TimeForm) -> str:
    """A hint for the detail of a record; empty if nothing is known."""
    if _is_time(value, times):
        return ""
    if times.zone and _is_time(value, replace(times, ambiguous="earlier")):
        return f"the clocks of {times.zone} show this time twice"
    if is_epoch(times) or times.format == "iso":
        for epoch in EPOCHS:
            if epoch != times.format and _is_time(value, TimeForm(epoch), recent=True):
                return f"it looks like {epoch}: see the key format"
    if times.format == "iso" and _is_time(value, replace(times, zone="UTC")):
        return "it has no offset: add the key zone beside its format, such as zone: UTC"
    return ""


def _is_time(value: object, times: TimeForm, *, recent: bool = False) -> bool:
    try:
        time = instant_reader(times)(value)
    except (ValueError, ArithmeticError):
        return False
    return time is not None and (not recent or _FIRST <= time.micros < _LAST)
