"""Reads times by their declared form, and event times by their bounds.

A form is ISO 8601, an epoch, or a date pattern of Spark. A pattern is read as Spark does: strictly,
with English names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import ROUND_FLOOR, Context, Decimal
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.declaration.expressions.patterns import fields_of
from headgate.declaration.model import OnAmbiguous, TimeForm
from headgate.flow.bronze.decoding.times import (
    BLANKS,
    FIRST,
    LAST,
    Flags,
    Instant,
    Ints,
    ReadTime,
    instant,
    iso_reader,
    local_shift,
    offset_of,
    read_times,
    utc,
)

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


EARLIEST = -61_851_600_000_000_000  # 0010-01-01T00:00:00Z
LATEST = 253_086_767_999_999_999  # 9989-12-31T23:59:59.999999Z
"""Valid event times are within these bounds. The longest window, lateness and ``within`` are a year
each, so a time that is computed from an event time is always in the years 1 to 9999: Python, and
most readers of a table, support no other years."""
_LATEST = pa.scalar(LATEST, pa.timestamp("us", "UTC"))
EPOCHS = {"epoch_seconds": 0, "epoch_millis": 3, "epoch_micros": 6, "epoch_nanos": 9}
"""The digits of a second that are in a whole number of each epoch."""
ISO = TimeForm()

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?", re.ASCII)
_MOST, _LEAST = 20, -30  # the places of the digits of an epoch
_EXACT = Context(prec=100, rounding=ROUND_FLOOR)


def is_epoch(form: TimeForm) -> bool:
    """Whether times are numbers, and not text."""
    return form.format in EPOCHS


def epoch_micros(numbers: Ints, form: TimeForm) -> tuple[Ints, Flags]:
    """The times of whole numbers, and whether each is in the years 1 to 9999. Digits after the
    sixth of a second are cut."""
    digits = EPOCHS[form.format]
    if digits > 6:
        return numbers // 10 ** (digits - 6), np.ones(len(numbers), np.bool_)
    unit = 10 ** (6 - digits)
    valid = (numbers >= FIRST // unit) & (numbers <= LAST // unit)
    return np.where(valid, numbers, 0) * unit, valid


@lru_cache(maxsize=64)
def text_reader(form: TimeForm) -> ReadTime:
    """Reads one time that is given as text: that of a number, for an epoch. Blanks around it do not
    count."""
    read = _stripped_reader(form)
    return lambda text: read(text.strip(BLANKS))


def _stripped_reader(form: TimeForm) -> ReadTime:
    if is_epoch(form):
        return _epoch_reader(EPOCHS[form.format])
    zone = None if form.zone is None else ZoneInfo(form.zone)
    if form.format == "iso":
        return iso_reader(zone, form.ambiguous)
    return pattern_reader(form.format.strip(BLANKS), zone, form.ambiguous)


def _epoch_reader(digits: int) -> ReadTime:
    """Reads numbers exactly, also those with a fraction or an exponent."""

    def read(text: str) -> Instant | None:
        if not _NUMBER.fullmatch(text):
            return None
        number = Decimal(text)
        if number.adjusted() > _MOST or number.as_tuple().exponent < _LEAST:  # type: ignore[operator]
            return None
        micros = _EXACT.scaleb(number, 6 - digits)
        whole = int(_EXACT.to_integral_value(micros))
        more = f"{_EXACT.subtract(micros, whole):f}".partition(".")[2].rstrip("0")
        return Instant(whole, more) if FIRST <= whole <= LAST else None

    return read


def text_micros(texts: pa.Array, form: TimeForm) -> tuple[Ints, Flags]:
    """The times of strings, and whether each is valid. A null is not valid."""
    micros = np.zeros(len(texts), np.int64)
    valid, left = np.zeros(len(texts), np.bool_), pc.is_valid(texts).to_numpy(zero_copy_only=False)
    if form.format == "iso":
        micros, valid = read_times(pc.fill_null(texts, ""))
        left = left & ~valid
        if form.zone is not None and left.any():
            _read_local_times(texts, form, np.flatnonzero(left), micros, valid)
            left = left & ~valid
    read = text_reader(form)
    for row in np.flatnonzero(left):
        if (time := read(texts[row].as_py())) is not None:
            micros[row], valid[row] = time.micros, True
    return micros, valid


def _read_local_times(
    texts: pa.Array, form: TimeForm, rows: Ints, micros: Ints, valid: Flags
) -> None:
    """Read the times without an offset at some ``rows`` into ``micros`` and ``valid``. The offset
    of each second is looked up once."""
    assert form.zone is not None
    local, known = read_times(pc.binary_join_element_wise(texts.take(pa.array(rows)), "Z", ""))
    zone, rows, local = ZoneInfo(form.zone), rows[known], local[known]
    seconds, places = np.unique(local // 1_000_000, return_inverse=True)
    shifts = [local_shift(utc(each * 1_000_000), zone, form.ambiguous) for each in seconds.tolist()]
    there = np.array([each is not None for each in shifts], np.bool_)[places]
    found = local - np.array([each or 0 for each in shifts], np.int64)[places]
    micros[rows] = found
    valid[rows] = there & (found >= FIRST) & (found <= LAST)


def are_future(
    times: pa.Array | pa.ChunkedArray, seen_at: pa.Array | pa.ChunkedArray, after: timedelta
) -> pa.Array | pa.ChunkedArray:
    """Whether event times are in the future for records that were seen at ``seen_at``: more than
    ``after`` later, or after ``LATEST``, whatever ``seen_at`` is. Null without a time."""
    ahead = pc.greater(times, pc.add(seen_at, pa.scalar(after, pa.duration("us"))))
    return pc.or_(ahead, pc.greater(times, _LATEST))
