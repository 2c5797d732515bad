"""Reads a record's event time by its declared rule."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.bronze.decoding.patterns import pattern_reader
from headgate.bronze.decoding.times import FIRST, LAST, Flags, Ints, iso_micros, read_times
from headgate.declaration.model import EventTime

EARLIEST = -61_851_600_000_000_000  # 0010-01-01T00:00:00Z
LATEST = 253_086_767_999_999_999  # 9989-12-31T23:59:59.999999Z
"""Valid event times are within these bounds. The longest window, lateness and ``within`` are a year
each, so a time that is computed from an event time is always in the years 1 to 9999: Python, and
most readers of a table, support no other years."""
_LATEST = pa.scalar(LATEST, pa.timestamp("us", "UTC"))
_UNITS = {"epoch_seconds": 1_000_000, "epoch_millis": 1_000}


def is_epoch(rule: EventTime) -> bool:
    """Whether event times are integers, and not text."""
    return rule.format in _UNITS


def epoch_micros(numbers: Ints, rule: EventTime) -> tuple[Ints, Flags]:
    """The times of epochs, and whether each is in the years 1 to 9999."""
    unit = _UNITS[rule.format]
    valid = (numbers >= FIRST // unit) & (numbers <= LAST // unit)
    return np.where(valid, numbers, 0) * unit, valid


@lru_cache(maxsize=64)
def text_reader(rule: EventTime) -> Callable[[str], int | None]:
    """Reads one time that is given as text."""
    return iso_micros if rule.format == "iso" else pattern_reader(rule.format, rule.zone)


def text_micros(texts: pa.Array, rule: EventTime) -> tuple[Ints, Flags]:
    """The times of strings, and whether each is valid. A null is not valid."""
    micros = np.zeros(len(texts), np.int64)
    valid, left = np.zeros(len(texts), np.bool_), pc.is_valid(texts).to_numpy(zero_copy_only=False)
    if rule.format == "iso":
        micros, valid = read_times(pc.fill_null(texts, ""))
        left = left & ~valid
    read = text_reader(rule)
    for row in np.flatnonzero(left):
        if (time := read(texts[row].as_py())) is not None:
            micros[row], valid[row] = time, True
    return micros, valid


def are_future(
    times: pa.Array | pa.ChunkedArray, seen_at: pa.Array | pa.ChunkedArray, after: timedelta
) -> pa.Array | pa.ChunkedArray:
    """Whether event times are in the future for records that were seen at ``seen_at``: more than
    ``after`` later, or after ``LATEST``, whatever ``seen_at`` is. Null without a time."""
    ahead = pc.greater(times, pc.add(seen_at, pa.scalar(after, pa.duration("us"))))
    return pc.or_(ahead, pc.greater(times, _LATEST))


ISO = EventTime("", "iso")
"""The rule of timestamps that are not the event time."""
