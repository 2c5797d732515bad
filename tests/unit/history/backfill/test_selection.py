"""What a backfill reads, and in which steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headgate.declaration.model import GoldTable
from headgate.history.backfill.errors import NotBackfilledError
from headgate.history.backfill.selection import (
    LATEST,
    EventTimeRange,
    backfills_into,
    bronze_steps,
    drains_of,
    first_begin,
)
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.decisions import Operation
from headgate.lake.tables.payloads.gold import GoldPayload
from tests.oracle.calendar import window_of
from tests.support.operators import table
from tests.support.toys import toys

Interval = tuple[datetime, datetime]

PATH = "gold/sales"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
LATE = "allowed_lateness: 1 s"


def file(n: int, merged_from: int | None = None) -> DataFile:
    name = "part-0" if merged_from is None else f"merged-{merged_from}"
    return DataFile(f"data/0-{n}-abc/{name}.parquet", 1, 1, "", {})


def drains(*numbers: int) -> list[Operation]:
    return [Operation(number, "drain", 10 * number, {}) for number in numbers]


def test_a_range_ends_before_its_end() -> None:
    assert EventTimeRange(100, 200).spans == ((100, 199),)


def test_no_step_passes_an_end_and_none_is_empty() -> None:
    files = [file(n) for n in (1, 2, 3, 5, 9, 11)]
    found = bronze_steps(files, {2, 4, 8, 10})
    assert [(s.after, s.upto, [f.n for f in s.files]) for s in found] == [
        (0, 2, [1, 2]),
        (2, 4, [3]),
        (4, 8, [5]),
        (8, 10, [9]),
    ]
    assert bronze_steps([file(5)], {2, 8}) == bronze_steps([file(5)], {8})


def test_a_merged_file_is_on_one_side_of_an_end() -> None:
    assert [s.upto for s in bronze_steps([file(4, merged_from=3)], {2, 4})] == [4]
    with pytest.raises(NotBackfilledError, match="across batch 3"):
        bronze_steps([file(4, merged_from=3)], {3, 4})


def test_each_drain_has_its_batch_and_its_end() -> None:
    held = GoldPayload(closed_through=90, drains={"2": 50, "5": 90})
    assert drains_of(held, drains(1, 2, 5)) == ((20, 50), (50, 90))
    assert drains_of(GoldPayload(), drains(1)) == ()


def test_backfills_that_touch_the_range_are_named_unless_they_were_rejected() -> None:
    def published(id_: str, span: list[int], table: str = "sales", **more: Any) -> Operation:
        return Operation(
            1, "backfill", 1, {"backfill": id_, "tables": {table: {"span": span}}, **more}
        )

    asked = [
        published("inside", [100, 150]),
        published("before", [0, 99]),
        published("after", [200, 300]),
        published("other", [100, 150], "visits"),
        published("rejected", [100, 150], rejected={"sales": {}}),
        Operation(2, "drain", 2, {}),
    ]
    assert backfills_into(EventTimeRange(100, 200), "sales", asked) == ("inside",)
    assert backfills_into(EventTimeRange(120, 120), "sales", asked) == (), "an empty range"


def micros(time: datetime) -> int:
    return (time - EPOCH) // timedelta(microseconds=1)


def windows(size: int, every: int, offset: int = 0) -> str:
    keys = f"size: {size} hours, every: {every} hours, offset: {offset} minutes"
    return f"window: {{hopping: {{{keys}}}}}\n    {LATE}"


def check_intervals(
    declared: GoldTable, intervals: Sequence[Interval], some: Iterable[Interval]
) -> None:
    """Each of ``some`` windows is in the range from the first begin to the end of the interval in
    which it ends, and of no other."""
    begins = {each: first_begin(declared, *map(micros, each)) for each in intervals}
    first, last = intervals[0][0], intervals[-1][1]
    checked = [(start, end) for start, end in some if first < end <= last]
    assert checked
    for start, end in checked:
        ends_in = [each for each in intervals if each[0] < end <= each[1]]
        holding = [
            each
            for each, begin in begins.items()
            if begin is not None and begin <= micros(start) and end <= each[1]
        ]
        assert holding == ends_in
        assert len(ends_in) == 1


@pytest.mark.parametrize("length", [1, 5, 24, 7 * 24])
@pytest.mark.parametrize("shift", [timedelta(0), timedelta(minutes=30)])
@pytest.mark.parametrize(("size", "every"), [(1, 1), (24, 24), (6, 2), (24, 1), (7 * 24, 24)])
@pytest.mark.parametrize("offset", [0, 30, 59])
def test_a_window_is_in_the_interval_in_which_it_ends(
    length: int, shift: timedelta, size: int, every: int, offset: int
) -> None:
    intervals = [
        (NOON + shift + n * length * HOUR, NOON + shift + (n + 1) * length * HOUR)
        for n in range(-(3 * size) // length, 3 * size // length + 3)
    ]
    number = (intervals[0][0] - EPOCH) // (every * HOUR) - 2 * size
    start, found = EPOCH + number * every * HOUR + timedelta(minutes=offset), []
    while start < intervals[-1][1]:
        found.append((start, start + size * HOUR))
        start += every * HOUR
    check_intervals(table(windows(size, every, offset)), intervals, found)


@pytest.mark.parametrize("hours", [1, 24, 7 * 24])
@pytest.mark.parametrize("unit", ["day", "week", "month"])
@pytest.mark.parametrize("zone", ["America/Sao_Paulo", "Europe/Berlin"])
def test_a_window_of_a_calendar_is_in_the_interval_in_which_it_ends(
    hours: int, unit: str, zone: str
) -> None:
    """Also in weeks in which the clocks are changed."""
    length, first = hours * HOUR, datetime(2018, 10, 20, tzinfo=UTC)
    count = 40 * 24 // hours
    intervals = [(first + n * length, first + (n + 1) * length) for n in range(count)]
    some = {window_of(first + n * HOUR, unit, zone) for n in range(40 * 24)}
    declared = table(f"window: {{calendar: {{unit: {unit}, zone: {zone}}}}}\n    {LATE}")
    check_intervals(declared, intervals, sorted(some))


def test_the_first_window_that_ends_in_an_interval() -> None:
    minutes = table(f"window: {{tumbling: 1 minute}}\n    {LATE}")
    days = table(f"window: {{tumbling: 1 day}}\n    {LATE}")
    noon, hour = micros(NOON), HOUR // timedelta(microseconds=1)
    midnight = noon - 12 * hour
    assert first_begin(minutes, noon, noon + hour) == noon
    assert first_begin(days, noon, noon + hour) is None
    assert first_begin(days, midnight + 23 * hour, midnight + 24 * hour) == midnight
    assert first_begin(days, noon, LATEST) == midnight
    shifted = table(f"window: {{tumbling: {{size: 1 day, offset: 6 hours}}}}\n    {LATE}")
    assert first_begin(shifted, noon, LATEST) == midnight + 6 * hour
    assert first_begin(shifted, midnight, LATEST) == midnight - 18 * hour
    assert first_begin(shifted, midnight, midnight + 6 * hour) == midnight - 18 * hour
    assert first_begin(shifted, midnight, midnight + 5 * hour) is None


def test_if_an_operator_does_not_know_its_windows_those_in_the_interval_are_compared() -> None:
    with toys():
        slots = table("slots: {every: 7 minutes, origin: '2026-03-01T00:03:00'}")
        assert first_begin(slots, micros(NOON), micros(NOON + HOUR)) == micros(NOON)


@pytest.mark.parametrize(
    "begin", [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 22, tzinfo=UTC)]
)
def test_an_interval_may_be_at_the_ends_of_time(begin: datetime) -> None:
    declared = table(windows(7 * 24, 24))
    first = first_begin(declared, micros(begin), LATEST)
    assert first is not None
    assert first <= micros(begin)
    assert first_begin(declared, micros(begin), micros(begin + HOUR)) is None
