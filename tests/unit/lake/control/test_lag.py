from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from headgate.lake.control.lag import KEPT, SAMPLE_EVERY, Sample, taken
from headgate.lake.storage.documents import decoded, encoded

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def test_samples_are_few_and_apart() -> None:
    samples: tuple[Sample, ...] = ()
    for i in range(1000):
        samples = taken(samples, Sample(NOON + timedelta(seconds=i), i, 0))
    assert len(samples) == KEPT
    assert {b.at - a.at for a, b in pairwise(samples)} == {SAMPLE_EVERY}
    assert samples[-1].backlog == 995


def test_samples_of_a_clock_that_was_ahead_are_dropped() -> None:
    ahead = Sample(NOON + timedelta(hours=3), 1, 0)
    before, after = Sample(NOON, 5, 0), Sample(NOON + SAMPLE_EVERY, 7, 0)
    assert taken((before, ahead), after) == (before, after)
    assert taken((ahead,), after) == (after,)


def test_a_sample_as_a_document() -> None:
    sample = Sample(NOON, 3, 7)
    assert decoded(encoded(sample), Sample) == sample
