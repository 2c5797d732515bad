"""Hours that are final, and their names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from headgate.supervision import hours

TWO = datetime(2026, 11, 20, 14, tzinfo=UTC)


def test_a_key_names_its_hour_in_utc() -> None:
    assert hours.key(TWO) == "2026-11-20T14:00:00"
    assert hours.key(TWO.astimezone(timezone(timedelta(hours=5)))) == "2026-11-20T14:00:00"
    assert hours.of("2026-11-20T14:00:00") == (TWO, TWO + timedelta(hours=1))
    with pytest.raises(ValueError, match="does not match format"):
        hours.of("yesterday")


@pytest.mark.parametrize(("minutes", "end"), [(0, 14), (1, 14), (59, 14), (60, 15)])
def test_an_hour_is_over_when_the_next_one_has_begun(minutes: int, end: int) -> None:
    assert hours.whole(TWO + timedelta(minutes=minutes)).hour == end


def test_every_hour_since_the_last_is_emitted_once() -> None:
    later = TWO + timedelta(hours=3)
    assert hours.between(TWO, later) == [
        "2026-11-20T14:00:00",
        "2026-11-20T15:00:00",
        "2026-11-20T16:00:00",
    ]
    assert hours.between(later, later) == []
    assert hours.between(later, TWO) == []


def test_at_first_only_the_last_hour_is_emitted() -> None:
    assert hours.between(None, TWO) == ["2026-11-20T13:00:00"]


def test_a_clock_that_jumps_by_decades_is_no_flood() -> None:
    found = hours.between(datetime(1970, 1, 1, tzinfo=UTC), TWO)
    assert len(found) == 366 * 24
    assert found[-1] == "2026-11-20T13:00:00"
