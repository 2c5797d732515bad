"""Reads times by their declared form, and event times by their bounds."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import ROUND_FLOOR, Context, Decimal
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.declaration.time_forms import TimeForm
from headgate.flow.bronze.decoding.patterns import pattern_reader
from headgate.flow.bronze.decoding.texts import BLANKS
from headgate.flow.bronze.decoding.times import (
    FIRST,
    LAST,
    Flags,
    Instant,
    Ints,
    ReadTime,
    iso_reader,
    local_shift,
    read_times,
    utc,
)

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
