"""How a backlog moves, over tables of cases."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from headgate.insight.status.trend import Trend, trend_of
from headgate.lake.control.driver_reports import LagSample

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def history(
    backlog: float, growth: float, processed: float, *, count: int = 10, every: float = 5
) -> list[LagSample]:
    """``count`` samples of which the last has ``backlog``; rates are in records a second."""
    ages = [every * (count - 1 - i) for i in range(count)]
    return [
        LagSample(
            NOON - timedelta(seconds=age),
            round(backlog - growth * age),
            round(1_000_000 - processed * age),
        )
        for age in ages
    ]


@pytest.mark.parametrize(
    ("backlog", "growth", "processed", "says"),
    [
        (90_000, 1200, 2400, "falling behind by 1,200 records/s"),
        (90_000, 1200, 0, "falling behind by 1,200 records/s"),
        (720_000, -1000, 3000, "catching up: up to date in about 12 min"),
        (90_000, -1000, 3000, "catching up: up to date in about 90 s"),
        (100_000, 0, 3000, "keeping up, 100,000 records behind"),
        # A little less arrives than is processed, which may be chance.
        (100_000, -60, 3000, "keeping up, 100,000 records behind"),
    ],
)
def test_what_is_said(backlog: float, growth: float, processed: float, says: str) -> None:
    assert str(trend_of(history(backlog, growth, processed))) == says


@pytest.mark.parametrize(
    "samples",
    [
        [],
        history(90_000, 1200, 2400, count=3),
        history(90_000, 1200, 2400, count=10, every=1),
        # Up to date: only the records of ten seconds are unread.
        history(24_000, 100, 2400),
        history(0, 0, 0),
        history(0, 0, 2400),
        # It was up to date until a moment ago.
        [*history(0, 0, 2400), LagSample(NOON + timedelta(seconds=60), 900_000, 1_000_000)],
    ],
    ids=["none", "three", "of ten seconds", "level", "still", "flowing", "a burst"],
)
def test_nothing_to_say(samples: Sequence[LagSample]) -> None:
    assert trend_of(samples) is None


def test_only_time_with_a_backlog_counts() -> None:
    """An hour without a backlog before the flood does not change the trend."""
    before = [LagSample(NOON - timedelta(seconds=3600 - 5 * i), 0, 900_000) for i in range(10)]
    flood = history(90_000, 1200, 2400)
    assert trend_of([*before, *flood]) == trend_of(flood)


def test_batches_that_move_the_backlog_up_and_down_are_seen_through() -> None:
    """The backlog grows by 1,200 records a second, and swings by 20,000 between samples."""
    smooth = history(500_000, 1200, 2400, count=20)
    teeth = [
        LagSample(s.at, s.backlog + (10_000 if i % 2 else -10_000), s.read)
        for i, s in enumerate(smooth)
    ]
    trend = trend_of(teeth)
    assert trend is not None
    assert trend.trend == "falling behind"
    assert trend.growth == pytest.approx(1200, rel=0.1)


def test_as_a_document() -> None:
    assert Trend("catching up", 720_000, -1000.04, timedelta(minutes=12)).as_dict() == {
        "trend": "catching up",
        "backlog": 720_000,
        "growth": -1000.0,
        "level": 720,
        "says": "catching up: up to date in about 12 min",
    }
