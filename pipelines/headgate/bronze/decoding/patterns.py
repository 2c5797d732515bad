"""Reads times by a Spark date pattern, as Spark does: strictly, with English names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from headgate.bronze.decoding.times import in_range, micros_of, offset_of
from headgate.declaration.patterns import fields_of

_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SHORT = [name[:3] for name in _MONTHS]

_DIGITS = {"yyyy": "{4}", "uuuu": "{4}", "yy": "{2}"} | {
    letter * width: "{2}" if width == 2 else "{1,2}" for letter in "MdHhms" for width in (1, 2)
}
_OFFSETS = {
    "X": r"Z|[+-]\d\d(?:\d\d)?",
    "XX": r"Z|[+-]\d{4}",
    "XXX": r"Z|[+-]\d\d:\d\d",
    "x": r"[+-]\d\d(?:\d\d)?",
    "xx": r"[+-]\d{4}",
    "xxx": r"[+-]\d\d:\d\d",
}
_WORDS = {"MMM": "|".join(_SHORT), "MMMM": "|".join(_MONTHS), "EEE": "|".join(_DAYS), "a": "am|pm"}
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)?")


def pattern_reader(pattern: str, zone: str | None) -> Callable[[str], int | None]:
    """Reads a text as microseconds since 1970 UTC, or None. A local time that the zone skips is
    moved later by the length of the gap. If a local time occurs twice, the first one is taken."""
    parts = fields_of(pattern)
    wanted = re.compile("".join(map(_expression, parts)), re.ASCII)
    there = None if zone is None else ZoneInfo(zone)

    def read(text: str) -> int | None:
        if (found := wanted.fullmatch(text)) is None:
            return None
        fields = {name[0]: value for name, value in found.groupdict().items()}
        try:
            local = _local(fields)
        except ValueError:
            return None
        if local is None:
            return None
        micros = micros_of(local) + _fraction(fields)
        shift = _shift(fields, local, there)
        return None if shift is None else in_range(micros - shift)

    return read


def _expression(part: tuple[str, str]) -> str:
    letters, literal = part
    if not letters:
        return re.escape(literal)
    if letters in _OFFSETS:
        return f"(?P<{letters}>{_OFFSETS[letters]})"
    if letters in _WORDS:
        return f"(?P<{letters}>(?i:{_WORDS[letters]}))"
    if letters[0] == "S":
        return rf"(?P<{letters}>\d{{1,{len(letters)}}})"
    return rf"(?P<{letters}>\d{_DIGITS[letters]})"


def _local(fields: Mapping[str, str]) -> datetime | None:
    """Raises ValueError if there is no such date."""
    year_text = fields.get("y") or fields["u"]
    year = int(year_text) + (2000 if len(year_text) == 2 else 0)
    if (hour := _hour(fields)) is None:
        return None
    minute, second = int(fields.get("m", 0)), int(fields.get("s", 0))
    local = datetime(year, _month(fields["M"]), int(fields["d"]), hour, minute, second)  # noqa: DTZ001
    weekday = fields.get("E")
    if weekday is not None and _DAYS[local.weekday()] != weekday.lower():
        return None
    return local


def _month(text: str) -> int:
    return int(text) if text.isdigit() else _SHORT.index(text[:3].lower()) + 1


def _hour(fields: Mapping[str, str]) -> int | None:
    """Without am or pm it is am; pm without an hour is noon."""
    afternoon = fields.get("a", "").lower() == "pm"
    if "H" in fields:
        return int(fields["H"])
    if "h" not in fields:
        return 12 if afternoon else 0
    hour = int(fields["h"])
    return hour % 12 + 12 * afternoon if 1 <= hour <= 12 else None


def _fraction(fields: Mapping[str, str]) -> int:
    return int(fields.get("S", "")[:6].ljust(6, "0"))


def _shift(fields: Mapping[str, str], local: datetime, zone: ZoneInfo | None) -> int | None:
    """Microseconds that the local time is ahead of UTC; None if there is no such offset."""
    if zone is not None:
        return (zone.utcoffset(local) or timedelta()) // timedelta(microseconds=1)
    given = fields.get("X") or fields.get("x") or "Z"
    if given == "Z":
        return 0
    found = _OFFSET.fullmatch(given)
    return offset_of(*found.groups()) if found else None
