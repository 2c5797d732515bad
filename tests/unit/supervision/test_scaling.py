"""Advice over tables of cases: how a backlog moved, and what that calls for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from headgate.storage.lag import Sample
from headgate.supervision.scaling import Advice, advise

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def history(
    backlog: float, growth: float, absorbed: float, *, count: int = 10, every: float = 5
) -> list[Sample]:
    """``count`` samples of which the last has ``backlog``; rates are in records a second."""
    ages = [every * (count - 1 - i) for i in range(count)]
    return [
        Sample(
            NOON - timedelta(seconds=age),
            round(backlog - growth * age),
            round(1_000_000 - absorbed * age),
        )
        for age in ages
    ]


@pytest.mark.parametrize(
    ("backlog", "growth", "absorbed", "cores", "says"),
    [
        # 3,600 arrive and 2,400 are taken in by two cores: 1,200 a second and core.
        (
            90_000,
            1200,
            2400,
            2,
            "falling behind by 1,200 records/s: 3 cores would keep up, 4 would catch up within "
            "an hour",
        ),
        # The backlog alone is worth 4,000 records a second for an hour.
        (
            14_400_000,
            1200,
            2400,
            2,
            "falling behind by 1,200 records/s: 3 cores would keep up, 7 would catch up within "
            "an hour",
        ),
        (
            50_000,
            500,
            1000,
            4,
            "falling behind by 500 records/s: 6 cores would keep up, 7 would catch up within an "
            "hour",
        ),
        (
            40_000,
            900,
            1000,
            1,
            "falling behind by 900 records/s: 2 cores would keep up, and catch up within an hour",
        ),
        # Nothing moves at all: no number of cores follows from that.
        (
            90_000,
            1200,
            0,
            2,
            "falling behind by 1,200 records/s: nothing was taken in, see headgate logs PIPELINE",
        ),
        (720_000, -1000, 3000, 2, "catching up: level in about 12 min"),
        (90_000, -1000, 3000, 2, "catching up: level in about 90 s"),
        (
            36_000_000,
            -1000,
            3000,
            2,
            "catching up: level in about 10 h: 8 cores would catch up within an hour",
        ),
        (
            100_000,
            0,
            3000,
            2,
            "keeping up, 100,000 records behind: 3 cores would catch up within an hour",
        ),
        # A little less arrives than is taken in, which may be chance.
        (
            100_000,
            -60,
            3000,
            2,
            "keeping up, 100,000 records behind: 3 cores would catch up within an hour",
        ),
        (
            100_000,
            0,
            1,
            1,
            "keeping up, 100,000 records behind: 29 cores would catch up within an hour",
        ),
    ],
)
def test_what_is_said(
    backlog: float, growth: float, absorbed: float, cores: int, says: str
) -> None:
    assert str(advise(history(backlog, growth, absorbed), cores)) == says


@pytest.mark.parametrize(
    "samples",
    [
        [],
        history(90_000, 1200, 2400, count=3),
        history(90_000, 1200, 2400, count=10, every=1),
        # Level: what is unread is what ten seconds take in.
        history(24_000, 100, 2400),
        history(0, 0, 0),
        history(0, 0, 2400),
        # It was level until a moment ago.
        [*history(0, 0, 2400), Sample(NOON + timedelta(seconds=60), 900_000, 1_000_000)],
    ],
    ids=["none", "three", "of ten seconds", "level", "still", "flowing", "a burst"],
)
def test_no_advice(samples: Sequence[Sample]) -> None:
    assert advise(samples, 2) is None


def test_only_time_with_a_backlog_counts() -> None:
    """An hour of a trickle before the flood says nothing of what two cores can do."""
    before = [Sample(NOON - timedelta(seconds=3600 - 5 * i), 0, 900_000) for i in range(10)]
    flood = history(90_000, 1200, 2400)
    assert advise([*before, *flood], 2) == advise(flood, 2)


def test_batches_that_move_the_backlog_up_and_down_are_seen_through() -> None:
    """It grows by 1,200 a second, in teeth of 20,000."""
    smooth = history(500_000, 1200, 2400, count=20)
    teeth = [
        Sample(s.at, s.backlog + (10_000 if i % 2 else -10_000), s.read)
        for i, s in enumerate(smooth)
    ]
    advice = advise(teeth, 2)
    assert advice is not None
    assert advice.trend == "falling behind"
    assert advice.growth == pytest.approx(1200, rel=0.1)


def test_more_cores_would_be_idle_where_batches_are_small() -> None:
    advice = advise(history(90_000, 1200, 2400), 2, full=1000)
    assert advice is not None
    assert (advice.keep_up, advice.catch_up) == (None, None)
    assert str(advice).endswith(
        ": batches are short and full, so raise max_per_batch (1,000) first"
    )


def test_it_needs_nothing_if_it_will_be_level_soon() -> None:
    advice = advise(history(720_000, -1000, 3000), 2, full=1000)
    assert str(advice) == "catching up: level in about 12 min"


@pytest.mark.parametrize("cores", [1, 2, 3, 8, 64])
@pytest.mark.parametrize("growth", [100, 1200, 50_000])
def test_it_never_advises_what_there_is_already(cores: int, growth: float) -> None:
    advice = advise(history(60_000_000, growth, 3000), cores)
    assert advice is not None
    assert advice.keep_up is not None
    assert advice.catch_up is not None
    assert cores < advice.keep_up <= advice.catch_up


def test_advice_as_a_document() -> None:
    advice = Advice("catching up", 720_000, -1000.04, timedelta(minutes=12))
    assert advice.as_dict() == {
        "trend": "catching up",
        "backlog": 720_000,
        "growth": -1000.0,
        "level": 720,
        "keep_up": None,
        "catch_up": None,
        "full": None,
    }
