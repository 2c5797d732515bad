from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from headgate.storage.lag import KEPT, SAMPLE_EVERY, Sample, taken

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def test_samples_are_few_and_apart() -> None:
    samples: tuple[Sample, ...] = ()
    for i in range(1000):
        samples = taken(samples, Sample(NOON + timedelta(seconds=i), i, 0))
    assert len(samples) == KEPT
    assert {b.at - a.at for a, b in pairwise(samples)} == {SAMPLE_EVERY}
    assert samples[-1].backlog == 995


def test_a_sample_as_a_document() -> None:
    sample = Sample(NOON, 3, 7)
    assert Sample.from_document(sample.document()) == sample
