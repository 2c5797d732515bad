"""How much a batch takes: at most its limit, never past an end, and everything in the end."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.flow.sources.kafka.ranges import next_range, unread
from headgate.flow.sources.micro_batches import next_limit

LOGS = st.dictionaries(
    st.integers(0, 200),
    st.tuples(st.integers(0, 10**12), st.integers(0, 10**6)),
    min_size=1,
    max_size=100,
)
SECOND = timedelta(seconds=1)


@given(LOGS, st.integers(1, 10**6))
def test_a_batch_is_within_its_limit_and_the_ends(
    logs: dict[int, tuple[int, int]], limit: int
) -> None:
    position = {p: start for p, (start, _) in logs.items()}
    ends = {p: start + records for p, (start, records) in logs.items()}
    reached = next_range(position, ends, limit)
    behind, taken = unread(position, ends), {p: reached[p] - position[p] for p in position}
    assert reached.keys() == position.keys()
    assert all(position[p] <= reached[p] <= ends[p] for p in position)
    # Each partition gives at least one record. Only these may exceed the limit.
    assert sum(taken.values()) <= limit + sum(n == 1 for n in taken.values())
    assert all(taken[p] >= 1 for p in behind)
    total = sum(behind.values())
    if total <= limit:
        assert reached == ends
    for p, records in behind.items():
        share = min(1, limit / total)
        assert taken[p] == 1 or share - 1 / records - 1e-9 <= taken[p] / records <= share + 1e-9


@pytest.mark.slow
@given(
    st.lists(st.integers(0, 3000), min_size=1, max_size=20),
    st.integers(1, 500),
)
def test_everything_is_read_in_as_many_batches_as_needed(records: list[int], limit: int) -> None:
    position, ends = dict.fromkeys(range(len(records)), 0), dict(enumerate(records))
    batches = 0
    while unread(position, ends):
        reached = next_range(position, ends, limit)
        assert reached != position
        position = reached
        batches += 1
        assert batches <= sum(records) / max(1, limit - len(records)) + len(records) + 1
    assert position == ends
    assert next_range(position, ends, limit) == position


@pytest.mark.parametrize("limit", [100, 500, 5000])
def test_partitions_are_through_at_about_the_same_time(limit: int) -> None:
    ends = {0: 1_000, 1: 3_000, 2: 6_000, 3: 20_000}
    position: Mapping[int, int] = dict.fromkeys(ends, 0)
    through: dict[int, int] = {}
    for batch in range(1, 1000):
        position = next_range(position, ends, limit)
        through |= {p: batch for p in ends if position[p] == ends[p] and p not in through}
    batches = 30_000 / limit
    assert all(batches <= batch <= batches * 1.1 + 2 for batch in through.values())


def test_a_partition_behind_its_end_is_not_read_backwards() -> None:
    assert unread({0: 9}, {0: 7}) == {}
    assert next_range({0: 9, 1: 0}, {0: 7, 1: 5}, 10) == {0: 9, 1: 5}


BOUNDS = {"target": 10 * SECOND, "lowest": 10, "highest": 1000}


@pytest.mark.parametrize(
    ("limit", "taken", "took", "then"),
    [
        (400, 400, 20, 200),  # the number that would have fitted
        (400, 400, 12, 333),
        (400, 400, 100, 200),  # at least half
        (15, 15, 100, 10),
        (400, 3, 100, 200),  # a slow batch of a few records is no measure of them
        (400, 400, 10, 400),
        (400, 400, 5, 400),  # in between, the limit stays
        (400, 400, 4.9, 601),
        (400, 399, 1, 400),  # the batch was not full: there was no more input
        (900, 900, 1, 1000),
    ],
)
def test_the_next_limit(limit: int, taken: int, took: float, then: int) -> None:
    assert next_limit(limit, taken, took * SECOND, **BOUNDS) == then  # type: ignore[arg-type]


@given(
    st.integers(1, 10**6),
    st.integers(0, 10**6),
    st.floats(0, 1e5),
    st.integers(1, 10**4),
    st.integers(0, 10**6),
)
def test_limits_stay_in_their_bounds(
    limit: int, taken: int, took: float, lowest: int, more: int
) -> None:
    limit = max(lowest, min(limit, lowest + more))
    then = next_limit(
        limit, taken, took * SECOND, target=SECOND, lowest=lowest, highest=lowest + more
    )
    assert lowest <= then <= lowest + more
    assert limit // 2 <= then <= limit + limit // 2 + 1


@given(st.floats(1, 1e5), st.floats(0, 20))
def test_limits_settle(records_per_second: float, overhead: float) -> None:
    """Under steady load they settle at a bound, or where batches have about the target duration."""
    limits = [1000]
    took = 0.0
    for _ in range(1100):  # at least one record fewer per step
        took = overhead + limits[-1] / records_per_second
        limits.append(next_limit(limits[-1], limits[-1], took * SECOND, **BOUNDS))  # type: ignore[arg-type]
    assert len(set(limits[-5:])) == 1
    assert limits[-1] in (10, 1000) or 5 <= took <= 10.001
    assert all(a >= b // 2 for a, b in pairwise(limits))
