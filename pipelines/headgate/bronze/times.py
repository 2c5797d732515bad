"""Strict conversion of text or numbers to times and dates: UTC, years 1 to 9999, null if
invalid."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from headgate.declaration.model import EventTime
from headgate.declaration.patterns import reading_regex

ISO = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d{1,9})? ?(Z|[+-]\d\d(:?\d\d)?)\z"
"""ISO 8601 with an offset: ``+01:00``, ``+0100``, ``+01`` or ``Z``, with a space before it or not.
Spark's own cast would also accept ``2026``, or a time without a date."""

_DATE = r"^(?!0000)\d{4}-\d\d-\d\d\z"

_FIRST_SECOND = -62135596800  # 0001-01-01T00:00:00Z
_LAST_SECOND = 253402300799  # 9999-12-31T23:59:59Z


def iso_time(text: Column) -> Column:
    """``text`` as a timestamp, truncated to microseconds. An offset may move it out of the years 1
    to 9999: see :func:`in_range`."""
    # The session's time zone is UTC. Without the Z, Spark parses a time much faster.
    digits = F.when(text.endswith("Z"), F.substring(text, F.lit(1), F.octet_length(text) - 1))
    return F.when(text.rlike(ISO), F.coalesce(digits, text).cast("timestamp"))


def iso_date(text: Column) -> Column:
    """``text`` as a date, years 1 to 9999. Spark's own cast would also accept ``2026-3-1``, or a
    time after the date."""
    return F.when(text.rlike(_DATE), text.cast("date"))


def event_time(raw: Column, rule: EventTime) -> Column:
    """A record's event time from the column ``rule`` names: text, or a number for epochs."""
    if rule.format == "iso":
        return iso_time(raw)
    if rule.format in ("epoch_seconds", "epoch_millis"):
        number = raw.cast("bigint")
        unit = 1000 if rule.format == "epoch_millis" else 1
        fits = number.between(_FIRST_SECOND * unit, _LAST_SECOND * unit + unit - 1)
        make = F.timestamp_millis if unit == 1000 else F.timestamp_seconds
        return make(F.when(fits, number))
    # The pattern is checked first: a year of many digits overflows in Spark and fails the stream.
    fits_pattern = raw.rlike(reading_regex(rule.format))
    local = F.try_to_timestamp(F.when(fits_pattern, raw), F.lit(rule.format))
    return F.to_utc_timestamp(local, rule.zone) if rule.zone else local


def in_range(time: Column) -> Column:
    """``time``, null outside the years 1 to 9999. ``time`` should be a column, not an expression:
    it is used three times."""
    first, last = F.lit("0001-01-01 00:00:00"), F.lit("9999-12-31 23:59:59.999999")
    return F.when(time.between(first.cast("timestamp"), last.cast("timestamp")), time)
