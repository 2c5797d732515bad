"""How much a step of a load reads: fast while the stream has no input, short while it has some."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headgate.flow.sources.loading import StepBounds, Steps, next_step

SECOND = timedelta(seconds=1)
BOUNDS = StepBounds.within(1_000, 16_000, 64_000)


@pytest.mark.parametrize(
    ("taken", "took", "fastest", "is_shared", "then"),
    [
        (4_000, 7, 7, True, 6_001),  # as fast as a small step: a smaller one would take as long
        (4_000, 7.9, 7, True, 6_001),  # the records take less than half of the two seconds
        (4_000, 8.5, 7, True, 4_000),
        (4_000, 11, 7, True, 2_000),  # they take four seconds
        (4_000, 11, 7, False, 6_001),  # ten seconds, if the stream has no input
        (4_000, 13, 7, False, 4_000),
        (4_000, 27, 7, False, 2_000),
        (400_000, 47, 7, True, 4_000),  # a large file: 20,000 would have fitted
        (400_000, 1_007, 7, True, 2_000),
    ],
)
def test_the_next_step(taken: int, took: float, fastest: float, is_shared: bool, then: int) -> None:
    given = (4_000, taken, took * SECOND, fastest * SECOND)
    assert next_step(*given, is_shared=is_shared, bounds=BOUNDS) == then


def test_the_bounds_are_never_more_than_those_of_the_stream() -> None:
    assert StepBounds.within(1_000, 16_000, 100) == StepBounds(100, 100, 100)
    assert StepBounds.within(1_000, 16_000, 4_000) == StepBounds(1_000, 4_000, 4_000)


def steps_of(
    records: int, *, fixed: float, each: float, is_shared: bool
) -> list[tuple[int, float]]:
    """The records and seconds of the steps of a load, on a machine where a step takes ``fixed``
    seconds, and ``each`` more for each record."""
    steps, found = Steps(BOUNDS, lambda: is_shared), list[tuple[int, float]]()
    while records > 0:
        read = min(steps.limit, records)
        took = fixed + each * read
        steps.took(took * SECOND)
        found.append((read, took))
        records -= read
    return found


def test_a_load_beside_an_idle_stream_takes_steps_of_the_streams_size() -> None:
    """A slow machine: a step of no records takes 7 seconds. With steps of 1,000 records, these
    61,076 took 62 steps."""
    found = steps_of(61_076, fixed=7, each=0.000_1, is_shared=False)
    assert [read for read, _ in found] == [16_000, 24_001, 21_075]


@pytest.mark.parametrize("fixed", [0.1, 1, 7, 30])
@pytest.mark.parametrize("each", [0.000_01, 0.000_1, 0.001])
def test_the_stream_waits_two_seconds_longer_than_for_the_shortest_step(
    fixed: float, each: float
) -> None:
    found = steps_of(500_000, fixed=fixed, each=each, is_shared=True)
    shortest = fixed + each * 1_000
    assert max(took for _, took in found) <= shortest + 2
    if each < 0.001:
        assert len(found) < 100, "steps grow, however long the shortest one takes"


def test_input_makes_the_very_next_step_small() -> None:
    has_input = False
    steps = Steps(BOUNDS, lambda: has_input)
    steps.took(SECOND)
    assert steps.limit == 24_001
    has_input = True
    assert steps.limit == 1_000
    steps.took(SECOND)
    assert steps.limit == 1_501
    has_input = False
    assert steps.limit == 24_001
