"""The matches of copies of an id are those that a comparison of every pair finds."""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from headgate.flow.bronze.dedup_index import DEDUP_ROWS
from headgate.flow.bronze.duplicate_matcher import DuplicateMatcher

WITHIN = 10
# partition, time, hash_a, hash_b, content, conforms: few of each, so that rows meet.
MOSTLY = st.sampled_from([0, 0, 0, 1])
ROW = st.tuples(MOSTLY, st.integers(-50, 50), st.just(1), MOSTLY, st.integers(0, 9), st.booleans())
MATCHING = DuplicateMatcher(WITHIN)
Row = tuple[int, int, int, int, int, bool]


@pytest.mark.slow
@settings(max_examples=150)
@example(
    [(0, 25, 1, 0, 1, True)], [(0, 11, 1, 0, 2, True), (0, 19, 1, 0, 3, True)]
)  # only the later one reaches it
@given(
    st.lists(ROW, max_size=8), st.lists(ROW, max_size=5) | st.lists(ROW, min_size=12, max_size=40)
)
def test_finds_who_has_an_earlier_copy_and_whether_one_is_the_same(
    batch: list[Row], past: list[Row]
) -> None:
    candidates = _table(batch).add_column(0, "i", pa.array(range(len(batch)), pa.int64()))
    past = [row for row in past if row[5]]
    matches = MATCHING.matches(candidates, _table(past))
    found = {row["i"]: row["same"] for row in matches.to_pylist()}
    expected = {}
    for i, row in enumerate(batch):
        copies = [other for other in past + batch[:i] if other[5] and _meet(row, other)]
        if copies:
            expected[i] = any(other[4] == row[4] for other in copies)
    assert found == expected


def test_a_past_of_one_id_is_thinned_before_it_is_compared() -> None:
    """A comparison of all these millions of different copies in reach would take a minute."""
    count = 3_000_000
    number = np.arange(count)
    past = pa.table(
        {
            "partition": np.zeros(count, np.int32),
            "time": number,
            "hash_a": np.full(count, 7),
            "hash_b": np.full(count, 9),
            "content": number,
        }
    )
    batch = _table([(0, count, 7, 9, count - 1, True), (0, count, 7, 9, -5, True)])
    candidates = batch.add_column(0, "i", pa.array([0, 1]))
    began = time.monotonic()
    matches = DuplicateMatcher(10 * count).matches(candidates, past)
    assert time.monotonic() - began < 30
    assert {row["i"]: row["same"] for row in matches.to_pylist()} == {0: True, 1: False}


def _meet(one: Row, other: Row) -> bool:
    same_id = (one[0], one[2:4]) == (other[0], other[2:4])
    return same_id and abs(one[1] - other[1]) <= WITHIN


def _table(rows: list[Row]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else ([] for _ in DEDUP_ROWS)
    return pa.table([list(column) for column in columns], schema=DEDUP_ROWS)
