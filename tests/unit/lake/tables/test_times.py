"""The times of commits."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from headgate.lake.tables.state import State, commit_time, just_after

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
MICRO = timedelta(microseconds=1)


def after(last: datetime, now: datetime) -> datetime:
    return just_after(replace(State.empty("gold/t"), at=commit_time(last)), now)


def test_commits_of_one_catch_up_have_different_times() -> None:
    assert after(NOON - MICRO, NOON) == NOON
    assert after(NOON, NOON) == NOON + MICRO
    assert after(NOON + MICRO, NOON) == NOON + 2 * MICRO


def test_a_clock_that_was_set_back_is_followed() -> None:
    assert after(NOON + timedelta(hours=3), NOON) == NOON


def test_no_digit_of_a_time_is_lost() -> None:
    """A double has too few of them after 2038."""
    for year in (1970, 2026, 2039, 9999):
        for micros in range(999_900, 1_000_000):
            now = datetime(year, 5, 4, 12, 1, 2, micros, tzinfo=UTC)
            assert commit_time(now) % 1_000_000 == micros
