"""Which windows end in an interval of time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from headgate.history.backfill.selection import LATEST
from headgate.history.backfill.window_times import first_begin
from tests.support.operators import table

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
LATE = "allowed_lateness: 1 s"


def micros(time: datetime) -> int:
    return (time - EPOCH) // timedelta(microseconds=1)


def windows(size: int, every: int) -> str:
    return f"window: {{hopping: {{size: {size} hours, every: {every} hours}}}}\n    {LATE}"


@pytest.mark.parametrize("length", [1, 5, 24, 7 * 24])
@pytest.mark.parametrize("shift", [timedelta(0), timedelta(minutes=30)])
@pytest.mark.parametrize(("size", "every"), [(1, 1), (24, 24), (6, 2), (24, 1), (7 * 24, 24)])
def test_a_window_is_in_the_interval_in_which_it_ends(
    length: int, shift: timedelta, size: int, every: int
) -> None:
    """It is in the range from the first begin to the end of one interval, and of no other."""
    declared = table(windows(size, every))
    intervals = [
        (NOON + shift + n * length * HOUR, NOON + shift + (n + 1) * length * HOUR)
        for n in range(-(3 * size) // length, 3 * size // length + 3)
    ]
    first, last = intervals[0][0], intervals[-1][1]
    start = EPOCH + ((first - EPOCH) // (every * HOUR) - 2 * size) * every * HOUR
    while (end := start + size * HOUR) <= last:
        if end > first:
            ends_in = [each for each in intervals if each[0] < end <= each[1]]
            begins = {each: first_begin(declared, *map(micros, each)) for each in intervals}
            holding = [
                each
                for each, begin in begins.items()
                if begin is not None and begin <= micros(start) and end <= each[1]
            ]
            assert holding == ends_in
            assert len(ends_in) == 1
        start += every * HOUR


def test_the_first_window_that_ends_in_an_interval() -> None:
    minutes = table(f"window: {{tumbling: 1 minute}}\n    {LATE}")
    days = table(f"window: {{tumbling: 1 day}}\n    {LATE}")
    noon, hour = micros(NOON), HOUR // timedelta(microseconds=1)
    midnight = noon - 12 * hour
    assert first_begin(minutes, noon, noon + hour) == noon
    assert first_begin(days, noon, noon + hour) is None
    assert first_begin(days, midnight + 23 * hour, midnight + 24 * hour) == midnight
    assert first_begin(days, noon, LATEST) == midnight


@pytest.mark.parametrize(
    "begin", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 22, tzinfo=UTC)]
)
def test_an_interval_may_be_at_the_ends_of_time(begin: datetime) -> None:
    declared = table(windows(7 * 24, 24))
    first = first_begin(declared, micros(begin), LATEST)
    assert first is not None
    assert first <= micros(begin)
    assert first_begin(declared, micros(begin), micros(begin + HOUR)) is None
