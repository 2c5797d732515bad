"""Counts, durations and sizes as people write them: ``2 files``, ``10 minutes``, ``64 MB``."""

from __future__ import annotations

import re
from datetime import timedelta

from headgate.declaration.errors import Invalid
from headgate.declaration.names import nearest

_UNITS = {
    timedelta(milliseconds=1): ("millisecond", "milliseconds", "ms"),
    timedelta(seconds=1): ("second", "seconds", "sec", "s"),
    timedelta(minutes=1): ("minute", "minutes", "min", "m"),
    timedelta(hours=1): ("hour", "hours", "h"),
    timedelta(days=1): ("day", "days", "d"),
}
_DURATIONS = {name: unit for unit, names in _UNITS.items() for name in names}
_SIZES = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}
_QUANTITY = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([A-Za-z]*)")

DURATION_EXAMPLES = '"10 minutes", "1 hour", "2 s", "500 ms"'
# The patterns of the JSON Schema, which follow the functions below.
DURATION_PATTERN = rf"^[0-9]+\s*({'|'.join(sorted(_DURATIONS))})$"
SHARE_PATTERN = r"^[0-9]{1,2}(\.[0-9]+)?\s*%$"
SIZE_PATTERN = rf"^[0-9]+\s*({'|'.join(_SIZES)})$"


def plural(count: int, noun: str) -> str:
    """Such as "1 row" and "2 rows"; of "batch", "2 batches"."""
    ending = "es" if noun.endswith("ch") else "s"
    return f"{count:,} {noun}{'' if count == 1 else ending}"


def parse_duration(text: str) -> timedelta:
    """A whole number, zero or more, and a unit. Raises Invalid. The caller checks the bounds."""
    found = _QUANTITY.fullmatch(text.strip())
    if found is None:
        raise Invalid(f"{text!r} is not a duration; write for example {DURATION_EXAMPLES}")
    number, unit = found.groups()
    if number.startswith("-"):
        raise Invalid(f"{text!r} is negative; a duration is zero or more")
    if not unit:
        raise Invalid(f"{text} has no unit", f"{number} seconds")
    if unit not in _DURATIONS:
        guess = nearest(unit, _DURATIONS)
        raise Invalid(f"{unit!r} is not a unit of time", f"{number} {guess}" if guess else None)
    if "." in number:
        raise Invalid(f"{text!r} is not a whole number; use a smaller unit")
    if len(number) > 12:
        raise Invalid(f"{text!r} is too long a time")
    try:
        return int(number) * _DURATIONS[unit]
    except OverflowError:
        raise Invalid(f"{text!r} is too long a time") from None


def parse_share(text: str) -> float:
    """A share of less than 100 %, as a fraction. Raises Invalid."""
    number = re.fullmatch(r"0?\.([0-9]+)|[0-9]{1,2}", text.strip())
    if number is not None:
        percent = float(text) * (1 if number[1] is None else 100)
        raise Invalid(f"{text!r} has no %", f"{percent:g} %")
    if re.fullmatch(SHARE_PATTERN, text.strip()) is None:
        raise Invalid(f"{text!r} is not a share below 100 %; write for example 5 %")
    return float(text.strip().rstrip("%")) / 100


def is_above(count: int, share: float, total: int) -> bool:
    """Whether a number is above a share of a total. It is not if it is exactly the share that was
    declared, which a float may miss in its last digit."""
    return count > round(share * total, 6)


def parse_size(text: str) -> int:
    """Bytes: a whole number, alone or with B, KB, MB or GB (1 KB = 1024 B). Raises Invalid."""
    found = _QUANTITY.fullmatch(text.strip())
    if found is None or "." in found[1] or len(found[1]) > 15:
        raise Invalid(f'{text!r} is not a size; write for example "64 MB" or a number of bytes')
    unit = found[2] or "B"
    if unit not in _SIZES:
        raise Invalid(f"{found[2]!r} is not a unit of size", nearest(unit, _SIZES))
    return int(found[1]) * _SIZES[unit]


def format_duration(duration: timedelta) -> str:
    """The shortest exact text of a duration in one unit: ``90 seconds``, ``1 minute``."""
    for unit, names in reversed(_UNITS.items()):
        if duration and duration % unit == timedelta(0):
            count = duration // unit
            return f"{count} {names[0] if count == 1 else names[1]}"
    return "0 seconds"


def format_step(step: timedelta | str) -> str:
    """``every 30 seconds``, or ``auto``."""
    return step if isinstance(step, str) else f"every {format_duration(step)}"


def span(time: timedelta) -> str:
    """An approximate duration, in one unit."""
    seconds = max(0.0, time.total_seconds())
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def size_text(size: int) -> str:
    """Bytes as a person reads them: 49.6 KB (1 KB = 1024 B)."""
    for name, factor in reversed(_SIZES.items()):
        if size >= factor > 1:
            return f"{size / factor:,.1f} {name}"
    return f"{size:,} B"


def format_size(size: int) -> str:
    """The shortest exact text of a size in one unit: ``64 MB``."""
    for unit, factor in reversed(_SIZES.items()):
        if size and size % factor == 0:
            return f"{size // factor} {unit}"
    return "0 B"
