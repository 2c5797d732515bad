"""How long the oldest unread record has been there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.flow.sources.kafka import backlog
from headgate.flow.sources.kafka.backlog import Arrivals

STEPS = st.lists(st.tuples(st.floats(0.1, 10), st.integers(0, 3), st.integers(0, 5)), max_size=60)


@given(STEPS)
def test_waiting_is_counted_from_when_the_record_was_first_seen(
    steps: list[tuple[float, int, int]],
) -> None:
    seen, now, end, position = Arrivals(), 0.0, 3, 0
    moments = dict.fromkeys(range(3), 0.0)
    seen.observe(now, {0: position}, {0: end})
    for passed, came, read in steps:
        now += passed
        moments |= {end + k: now for k in range(came)}
        end += came
        position = min(end, position + read)
        seen.observe(now, {0: position}, {0: end})
        oldest = now - moments[position] if position < end else 0.0
        # Never too low, and too high by at most a fraction of the whole time.
        told = seen.waiting(now, 0, position)
        assert oldest - 1e-6 <= told <= oldest + now / backlog._EXACT_TO + 1e-6


@pytest.mark.parametrize("position", [0, 10, 10_000, 19_900, 19_990])
def test_a_long_backlog_takes_little_memory(position: int) -> None:
    seen = Arrivals()
    for now in range(20_000):
        seen.observe(now, {0: 0}, {0: now + 1})
    oldest = 20_000 - position
    assert oldest <= seen.waiting(20_000, 0, position) <= oldest + 20_000 / 64
    assert len(seen._moments[0]) < 1000


def test_a_partition_nobody_knows_waits_for_nothing() -> None:
    seen = Arrivals()
    seen.observe(0, {}, {0: 0})
    assert seen.waiting(5, 0, 0) == 0
    assert seen.waiting(5, 1, 0) == 0
    seen.observe(1, {}, {1: 4})
    assert seen.waiting(5, 1, 0) == 4
