"""Strict conversion of text to times: microseconds since 1970 UTC, years 1 to 9999.

The form is ISO 8601 with an offset, such as ``+01:00``, ``+0100``, ``+01``, ``Z`` or ``UTC``,
optionally after a space. Seconds may be left out. The fraction of a second has any number of
digits, after a point or a comma; the time is cut after six of them. The name of a zone after the
offset, as Java writes it, is not read. With a zone, the offset may be left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.declaration.model import OnAmbiguous

BLANKS = " \t\n\r\f\v"
"""These do not count around a number, a boolean, a date or a time in a text."""

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

FIRST = -62_135_596_800_000_000  # 0001-01-01T00:00:00Z
LAST = 253_402_300_799_999_999  # 9999-12-31T23:59:59.999999Z
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001
_MICRO = timedelta(microseconds=1)
_MAX_OFFSET = timedelta(hours=18)

_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?"
    r"(?P<offset> ?(?:[Zz]|UTC|([+-])(\d\d)(?::?(\d\d)(?::?(\d\d))?)?)(?:\[[\w/+-]+\])?)?",
    re.ASCII,
)


class Instant(NamedTuple):
    """``micros`` since 1970 UTC. ``more`` has the digits of the second after the sixth, without
    zeros at the end."""

    micros: int
    more: str = ""


ReadTime = Callable[[str], Instant | None]
"""Reads a text; None if it is not a time of the form."""


def iso_reader(zone: ZoneInfo | None, ambiguous: OnAmbiguous = "earlier") -> ReadTime:
    """``zone`` is that of times without an offset. Without a zone, they are not read."""

    def read(text: str) -> Instant | None:
        if (found := _ISO.fullmatch(text)) is None:
            return None
        *numbers, fraction, offset, sign, hours, minutes, seconds = found.groups()
        try:
            local = datetime(*(int(each or 0) for each in numbers))  # type: ignore[arg-type]  # noqa: DTZ001
        except ValueError:
            return None
        if offset is None:
            shift = local_shift(local, zone, ambiguous) if zone else None
        else:
            shift = offset_of(sign, hours, minutes, seconds)
        return instant(local, fraction or "", shift)

    return read


def instant(local: datetime, fraction: str, shift: int | None) -> Instant | None:
    """The instant of a local time that is ``shift`` microseconds ahead of UTC. ``fraction`` has the
    digits of the second."""
    if shift is None:
        return None
    micros = micros_of(local) + int(fraction[:6].ljust(6, "0")) - shift
    return Instant(micros, fraction[6:].rstrip("0")) if FIRST <= micros <= LAST else None


def offset_of(
    sign: str | None, hours: str | None, minutes: str | None, seconds: str | None = None
) -> int | None:
    """The offset in microseconds; None if there is no such offset."""
    parts = [int(each or 0) for each in (hours, minutes, seconds)]
    offset = timedelta(hours=parts[0], minutes=parts[1], seconds=parts[2])
    if offset > _MAX_OFFSET or max(parts[1:]) > 59:
        return None
    return (-1 if sign == "-" else 1) * (offset // _MICRO)


def local_shift(local: datetime, zone: ZoneInfo, ambiguous: OnAmbiguous) -> int | None:
    """Microseconds that a local time is ahead of UTC. If the clocks show it twice, ``ambiguous``
    decides, and it may be none of both. A time that the clocks skip is moved later by the length of
    the gap: it has the offset before the gap."""
    before = zone.utcoffset(local) or timedelta()
    after = zone.utcoffset(local.replace(fold=1)) or timedelta()
    if before > after and ambiguous != "earlier":
        return None if ambiguous == "quarantine" else after // _MICRO
    return before // _MICRO


def micros_of(utc: datetime) -> int:
    """The microseconds since 1970 of a time in UTC, given without a zone."""
    return (utc - _EPOCH) // _MICRO


def utc(micros: int) -> datetime:
    """The reverse of ``micros_of``."""
    return _EPOCH + timedelta(microseconds=micros)


def time_text(time: Instant) -> str:
    """An instant as the text of an id: ``2026-03-01 11:00:00.5``, in UTC, without needless
    digits."""
    at = utc(time.micros)
    if time.more:
        return f"{at.isoformat(' ', 'microseconds')}{time.more}"
    text = at.isoformat(" ")
    return text.rstrip("0") if "." in text else text


def time_texts(times: pa.TimestampArray) -> pa.StringArray:
    """``time_text`` of an array of times in microseconds."""
    # Without a zone, Arrow writes UTC, always with six digits of a fraction.
    texts = times.cast(pa.timestamp("us")).cast(pa.string())
    return pc.ascii_rtrim(pc.ascii_rtrim(texts, "0"), ".")


def read_times(texts: pa.Array) -> tuple[Ints, Flags]:
    """The times of strings without nulls, and whether each was read. Texts in a rare form are not
    read here; ``iso_reader`` reads or rejects them."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32)[texts.offset :][: len(texts) + 1]
    data = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
    lengths = np.diff(offsets)
    micros, done = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
    for length in np.unique(lengths):
        if 20 <= length <= 30:
            rows = np.flatnonzero(lengths == length)
            starts = offsets[rows]
            if len(rows) == len(texts):
                letters = data[starts[0] : starts[0] + len(rows) * length].reshape(-1, length)
            else:
                letters = data[starts[:, None] + np.arange(length)]
            micros[rows], done[rows] = _of_one_length(letters)
    return micros, done


_DIGITS = (0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18)
_SIGNS = {4: b"-", 7: b"-", 10: b"T ", 13: b":", 16: b":"}


def _of_one_length(letters: Bytes) -> tuple[Ints, Flags]:
    """The times of texts of one length, one text per row, and whether each was read: those that end
    with Z, and those with an offset such as +01:00."""
    done = _are_digits(letters, _DIGITS)
    for place, signs in _SIGNS.items():
        done &= np.isin(letters[:, place], np.frombuffer(signs, np.uint8))
    year, month = _number(letters, 0, 4), _number(letters, 5, 2)
    done &= (year > 0) & (month >= 1) & (month <= 12)
    months = ((year - 1970) * 12 + np.clip(month, 1, 12) - 1).astype("datetime64[M]")
    day = _number(letters, 8, 2)
    first, after = months.astype("datetime64[D]"), (months + 1).astype("datetime64[D]")
    done &= (day >= 1) & (day <= (after - first).astype(np.int64))
    hour, minute, second = (_number(letters, place, 2) for place in (11, 14, 17))
    done &= (hour < 24) & (minute < 60) & (second < 60)
    seconds = (first.astype(np.int64) + day - 1) * 86_400 + hour * 3_600 + minute * 60 + second
    fraction, shift, ended = _end(letters)
    micros = seconds * 1_000_000 + fraction - shift
    return micros, done & ended & (micros >= FIRST) & (micros <= LAST)


def _end(letters: Bytes) -> tuple[Ints, Ints, Flags]:
    """The fraction and the offset in microseconds, and whether the end was read."""
    length = letters.shape[1]
    none = np.zeros(len(letters), np.int64)
    in_utc = letters[:, -1] == ord("Z")
    fraction, shift = none, none
    if length > 20:
        places = range(20, length - 1)
        in_utc &= (letters[:, 19] == ord(".")) & _are_digits(letters, places) & (length > 21)
        kept = places[:6]
        fraction = _number(letters, 20, len(kept)) * 10 ** (6 - len(kept))
    if length != 25:
        return fraction, shift, in_utc
    sign = letters[:, 19]
    hours, minutes = _number(letters, 20, 2), _number(letters, 23, 2)
    shifted = ((sign == ord("+")) | (sign == ord("-"))) & (letters[:, 22] == ord(":"))
    shifted &= _are_digits(letters, (20, 21, 23, 24)) & (minutes < 60)
    shifted &= hours * 60 + minutes <= 18 * 60
    shift = np.where(sign == ord("-"), -1, 1) * (hours * 60 + minutes) * 60_000_000
    return np.where(shifted, 0, fraction), np.where(shifted, shift, 0), in_utc | shifted


def _are_digits(letters: Bytes, places: range | tuple[int, ...]) -> Flags:
    # Bytes below the digits wrap around to large numbers.
    digits: Flags = letters[:, list(places)] - np.uint8(48) <= 9
    return np.asarray(digits.all(axis=1))


def _number(letters: Bytes, first: int, length: int) -> Ints:
    number = np.zeros(len(letters), np.int64)
    for place in range(first, first + length):
        number = number * 10 + (letters[:, place].astype(np.int64) - 48)
    return number
