"""A partition is idle if it is fully read, and silent for long enough while others deliver."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.flow.sources.idling import PAUSE, Idling, waited_for

AFTER = 100.0  # seconds


def idling() -> Idling[int]:
    return Idling(timedelta(seconds=AFTER))


def flow(
    over: Idling[int], start: float, seconds: float, ends: dict[int, int], every: float = 1
) -> None:
    """Partition 0 grows, the others do not."""
    for tick in range(1, round(seconds / every) + 1):
        ends[0] += 1
        over.observe(start + tick * every, ends)


def test_a_silent_partition_is_idle_after_exactly_so_much_flow() -> None:
    over, ends = idling(), {0: 0, 1: 5, 2: 0}
    over.observe(0, ends)
    # The time before the first arrival does not count.
    flow(over, 0, AFTER, ends)
    assert over.idle(ends) == frozenset()
    flow(over, AFTER, 1, ends)
    assert over.idle(ends) == {1, 2}
    assert waited_for(ends, over.idle(ends)) == {0}


def test_what_is_not_read_is_not_idle() -> None:
    over, ends = idling(), {0: 0, 1: 5}
    over.observe(0, ends)
    flow(over, 0, 2 * AFTER, ends)
    assert over.idle({0: 0, 1: 4}) == frozenset()
    assert over.idle({0: 0}) == frozenset()
    assert over.idle({0: 0, 1: 5}) == {1}


def test_a_record_starts_the_timer_anew() -> None:
    over, ends = idling(), {0: 0, 1: 5}
    over.observe(0, ends)
    flow(over, 0, AFTER + 1, ends)
    assert over.idle(ends) == {1}
    ends[1] += 1
    over.observe(AFTER + 2, ends)
    assert over.idle(ends) == frozenset()
    flow(over, AFTER + 2, AFTER - 1, ends)
    assert over.idle(ends) == frozenset()
    flow(over, 2 * AFTER + 1, 1, ends)
    assert over.idle(ends) == {1}


@pytest.mark.parametrize(("pause", "idle"), [(AFTER / PAUSE, True), (AFTER / PAUSE + 1, False)])
def test_a_pause_starts_every_timer_anew(pause: float, idle: bool) -> None:
    over, ends = idling(), {0: 0, 1: 5}
    over.observe(0, ends)
    flow(over, 0, 60, ends)
    flow(over, 60 + pause - 1, 40, ends)
    assert (1 in over.idle(ends)) is idle


def test_looking_often_without_arrivals_is_no_flow() -> None:
    over, ends = idling(), {0: 0, 1: 5}
    for moment in range(1000):
        over.observe(moment, ends)
    assert over.idle(ends) == frozenset()


def test_a_partition_that_was_added_has_a_timer_of_its_own() -> None:
    over, ends = idling(), {0: 0}
    over.observe(0, ends)
    flow(over, 0, 50, ends, every=10)
    ends[1] = 0
    flow(over, 50, 110, ends, every=10)
    # It counts from second 60 on, when it was first seen, and not from second 50.
    assert over.idle(ends) == {1}
    over, ends = idling(), {0: 0}
    over.observe(0, ends)
    flow(over, 0, 50, ends, every=10)
    ends[1] = 0
    flow(over, 50, 100, ends, every=10)
    assert over.idle(ends) == frozenset()


def test_a_partition_that_is_gone_is_not_idle() -> None:
    over, ends = idling(), {0: 0, 1: 5}
    over.observe(0, ends)
    flow(over, 0, 2 * AFTER, ends)
    del ends[1]
    over.observe(2 * AFTER + 1, ends)
    assert over.idle({0: 0, 1: 5}) == frozenset()


STEPS = st.lists(
    st.tuples(
        st.floats(0.1, 30),
        st.dictionaries(st.integers(0, 3), st.integers(0, 2)),
        st.dictionaries(st.integers(0, 3), st.integers(0, 10)),
    ),
    max_size=80,
)


@pytest.mark.slow
@given(STEPS)
def test_idle_means_read_and_silent_while_others_delivered(
    steps: list[tuple[float, dict[int, int], dict[int, int]]],
) -> None:
    """Compared with the definition, which is computed from the whole history."""
    over = idling()
    now, ends, position = 0.0, dict.fromkeys(range(4), 0), dict.fromkeys(range(4), 0)
    arrivals: list[tuple[float, frozenset[int]]] = []
    over.observe(now, ends)
    for passed, grown, read in steps:
        now += passed
        for partition, records in grown.items():
            ends[partition] += records
        for partition, records in read.items():
            position[partition] = min(ends[partition], position[partition] + records)
        over.observe(now, ends)
        if came := frozenset(p for p, records in grown.items() if records):
            arrivals.append((now, came))
        idle = over.idle(position)
        assert all(position[p] == ends[p] for p in idle)
        assert idle == {p for p in ends if position[p] == ends[p] and silent(p, arrivals) >= AFTER}


def silent(partition: int, arrivals: list[tuple[float, frozenset[int]]]) -> float:
    """How long the others have delivered without a pause while this partition delivered nothing."""
    last = -1
    for number, (at, came) in enumerate(arrivals):
        paused = number and at - arrivals[number - 1][0] > AFTER / PAUSE
        if partition in came or paused or number == 0:
            last = number
    if last < 0:
        return 0.0
    total = 0.0
    for number in range(last + 1, len(arrivals)):
        total += arrivals[number][0] - arrivals[number - 1][0]
    return total
