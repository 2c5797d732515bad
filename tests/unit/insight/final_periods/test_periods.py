"""Hours and days, their names, and which of them are due."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone

import pytest

from headgate.insight.final_periods.periods import DAY, HOUR, Period
from headgate.insight.final_periods.progress import MOST, Emitted, TableVersion

TWO = datetime(2026, 11, 20, 14, tzinfo=UTC)
MIDNIGHT = datetime(2026, 11, 20, tzinfo=UTC)


def test_a_key_names_its_period_in_utc() -> None:
    assert HOUR.key(TWO) == "2026-11-20T14:00:00"
    assert HOUR.key(TWO.astimezone(timezone(timedelta(hours=5)))) == "2026-11-20T14:00:00"
    assert HOUR.of("2026-11-20T14:00:00") == (TWO, TWO + timedelta(hours=1))
    assert DAY.key(TWO) == "2026-11-20"
    assert DAY.of("2026-11-20") == (MIDNIGHT, MIDNIGHT + timedelta(days=1))
    with pytest.raises(ValueError, match="does not match format"):
        HOUR.of("yesterday")


@pytest.mark.parametrize(("minutes", "end"), [(0, 14), (1, 14), (59, 14), (60, 15)])
def test_a_period_is_over_when_the_next_one_has_begun(minutes: int, end: int) -> None:
    assert HOUR.whole(TWO + timedelta(minutes=minutes)).hour == end
    assert DAY.whole(TWO + timedelta(minutes=minutes)) == MIDNIGHT


def hours(*numbers: int) -> Iterable[datetime]:
    return [MIDNIGHT + timedelta(hours=number) for number in numbers]


@pytest.mark.parametrize(
    ("period", "changed", "present", "before", "now", "due"),
    [
        (HOUR, (), (13, 14), 13, 15, (13, 14)),
        (HOUR, (), (13, 14, 15), 13, 15, (13, 14)),
        (HOUR, (), (5000,), 13, 5002, (5000,)),
        (HOUR, (), (), 13, 15, ()),
        (HOUR, (3,), (13,), 13, 14, (3, 13)),
        (HOUR, (3,), (), 13, 13, (3,)),
        (HOUR, (3, 12, 13), (13,), 13, 13, (3, 12)),
        (HOUR, (3, 9), (), 13, 8, (3,)),
        (HOUR, (), (2, 3, 4), None, 4, (3,)),
        (HOUR, (), (), None, 4, ()),
        (DAY, (), (13, 14), 13, 23, ()),
        (DAY, (), (13, 14), 13, 24, (0,)),
        (DAY, (), (13, 30), 13, 73, (0, 24)),
        (DAY, (3, 4), (), 30, 40, (0,)),
        (DAY, (3, 28), (), 30, 40, (0,)),
        (DAY, (), (3, 28), None, 40, (0,)),
    ],
)
def test_what_is_due(
    period: Period,
    changed: Iterable[int],
    present: Iterable[int],
    before: int | None,
    now: int,
    due: Iterable[int],
) -> None:
    """Times are hours of a day; the minutes of an hour that is not over do not matter."""
    half = timedelta(minutes=30)
    then = None if before is None else MIDNIGHT + timedelta(hours=before) + half
    end = MIDNIGHT + timedelta(hours=now) + half
    assert period.due([*hours(*changed)], [*hours(*present)], then, end) == [*hours(*due)]


def position(version: int = 5, **more: int) -> TableVersion:
    final = (TWO + timedelta(minutes=more.pop("minutes", 20))).isoformat()
    return TableVersion(version, more.get("generation", 1), more.get("operation", 3), 10, final)


@pytest.mark.parametrize(
    ("later", "by_hour"),
    [
        (position(6), False),
        (position(6, minutes=59), False),
        (position(6, minutes=60), True),
        (position(6, operation=4), True),
        (position(6, generation=2), True),
        (position(6, generation=2, minutes=-1), False),
        (position(4), True),
    ],
)
def test_when_a_later_position_may_differ(later: TableVersion, *, by_hour: bool) -> None:
    assert position().may_differ(later, HOUR) == by_hour


def test_a_position_is_renewed_before_its_version_is_removed() -> None:
    def aged(hours: int) -> TableVersion:
        age = hours * 3_600_000_000
        return TableVersion(6, 1, 3, 10 + age, position().final_up_to)

    assert not position().may_differ(aged(5), HOUR)
    assert position().may_differ(aged(6), HOUR)


def test_reports_have_a_limited_size_and_each_period_once() -> None:
    due = [*hours(*range(2 * MOST + 1))]
    progress = Emitted(0, "table", None)
    told: list[datetime] = []
    for number in (1, 2, 3):
        starts, progress = progress.after(due, position())
        assert Emitted.decode(progress.encode()) == progress
        assert (progress.number, len(starts) <= MOST) == (number, True)
        assert (progress.upto is None) == (number == 3)
        told += starts
    assert told == due
    assert progress == Emitted(3, "table", position())
