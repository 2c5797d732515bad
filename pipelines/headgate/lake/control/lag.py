"""How a backlog has changed: samples that a job of bronze keeps in its status document."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

SAMPLE_EVERY = timedelta(seconds=5)
KEPT_SAMPLES = 20


@dataclass(frozen=True)
class LagSample:
    """At the time ``at``, ``backlog`` records were unread, and ``read`` records had been read since
    the tables were created."""

    at: datetime
    backlog: int
    read: int


def with_sample(samples: tuple[LagSample, ...], sample: LagSample) -> tuple[LagSample, ...]:
    """``samples`` with ``sample`` at the end, unless it is too soon after the last one. The oldest
    samples are dropped, and all with a later time: they come from a clock that was ahead."""
    earlier = tuple(each for each in samples if each.at <= sample.at)
    if earlier and sample.at - earlier[-1].at < SAMPLE_EVERY:
        return earlier
    return (*earlier, sample)[-KEPT_SAMPLES:]
