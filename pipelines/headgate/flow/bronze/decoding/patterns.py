"""Reads times by a Spark date pattern, as Spark does: strictly, with English names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from zoneinfo import ZoneInfo

from headgate.declaration.patterns import fields_of
from headgate.declaration.time_forms import OnAmbiguous
from headgate.flow.bronze.decoding.times import Instant, ReadTime, instant, local_shift, offset_of

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


def pattern_reader(
    pattern: str, zone: ZoneInfo | None, ambiguous: OnAmbiguous = "earlier"
) -> ReadTime:
    """Reads times by a pattern. ``zone`` is that of a pattern without an offset."""
    parts = fields_of(pattern)
    wanted = re.compile("".join(map(_expression, parts)), re.ASCII)

    def read(text: str) -> Instant | None:
        if (found := wanted.fullmatch(text)) is None:
            return None
        fields = {name[0]: value for name, value in found.groupdict().items()}
        try:
            local = _local(fields)
        except ValueError:
            return None
        if local is None:
            return None
        shift = local_shift(local, zone, ambiguous) if zone else _offset(fields)
        return instant(local, fields.get("S", ""), shift)

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


def _offset(fields: Mapping[str, str]) -> int | None:
    """Microseconds ahead of UTC; None if there is no such offset."""
    given = fields.get("X") or fields.get("x") or "Z"
    if given == "Z":
        return 0
    found = _OFFSET.fullmatch(given)
    return offset_of(*found.groups()) if found else None
