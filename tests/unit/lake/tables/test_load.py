"""Where the records of loads are among the offsets of a partition."""

from __future__ import annotations

from itertools import pairwise

import pytest

from headgate.lake.tables.load import (
    MOST_LOADS,
    MOST_OFFSET,
    TooManyLoadsError,
    next_number,
    shift_of,
    span_of,
)

SMALLEST = -(1 << 63)


def test_loads_are_before_the_source_and_apart() -> None:
    spans = [span_of(number) for number in range(MOST_LOADS, 0, -1)]
    assert spans[0][0] >= SMALLEST
    assert spans[-1][1] == -1
    for (_, last), (first, _) in pairwise(spans):
        assert last + 1 == first
    for number in (1, 2, MOST_LOADS):
        assert span_of(number) == (shift_of(number), shift_of(number) + MOST_OFFSET)
        assert shift_of(number) + MOST_OFFSET < 0


def test_a_new_load_has_the_next_number() -> None:
    assert next_number([]) == 1
    assert next_number([3, 2]) == 4
    with pytest.raises(TooManyLoadsError, match="127"):
        next_number([MOST_LOADS])
