from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from headgate.lake.control.driver_reports import KEPT_SAMPLES, SAMPLE_EVERY, LagSample, with_sample
from headgate.lake.storage.documents import decoded, encoded

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def test_samples_are_few_and_apart() -> None:
    samples: tuple[LagSample, ...] = ()
    for i in range(1000):
        samples = with_sample(samples, LagSample(NOON + timedelta(seconds=i), i, 0))
    assert len(samples) == KEPT_SAMPLES
    assert {b.at - a.at for a, b in pairwise(samples)} == {SAMPLE_EVERY}
    assert samples[-1].backlog == 995


def test_samples_of_a_clock_that_was_ahead_are_dropped() -> None:
    ahead = LagSample(NOON + timedelta(hours=3), 1, 0)
    before, after = LagSample(NOON, 5, 0), LagSample(NOON + SAMPLE_EVERY, 7, 0)
    assert with_sample((before, ahead), after) == (before, after)
    assert with_sample((ahead,), after) == (after,)


def test_a_sample_as_a_document() -> None:
    sample = LagSample(NOON, 3, 7)
    assert decoded(encoded(sample), LagSample) == sample
