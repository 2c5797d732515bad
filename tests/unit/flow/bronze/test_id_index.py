"""The index against a plain list of pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.flow.bronze.id_index import IdIndex

# Few keys, so that batches share them; negative and large ones, as hashes are.
KEYS = st.sampled_from([-(2**63), -9, -1, 0, 1, 7, 8, 2**40, 2**63 - 1])
BATCHES = st.lists(st.lists(KEYS, max_size=12), max_size=40)


@pytest.mark.slow
@settings(max_examples=200)
@given(BATCHES, st.sets(KEYS), st.integers(1, 40))
def test_finds_all_rows_of_all_batches(
    batches: list[list[int]], wanted: set[int], half: int
) -> None:
    index = IdIndex(1)
    held: list[tuple[int, int]] = []
    for number, batch in enumerate(batches):
        rows = [(key, number * 100 + i) for i, key in enumerate(batch)]
        index.add(_ints(batch), [_ints([row for _, row in rows])])
        held += rows
        if number == half:
            index.keep(index.column(0) % 2 == 0)
            held = [(key, row) for key, row in held if row % 2 == 0]
    keys, columns = index.find(_ints(sorted(wanted)))
    found = sorted(zip(keys.tolist(), columns[0].tolist(), strict=True))
    assert found == sorted((key, row) for key, row in held if key in wanted)
    assert len(index) == len(held)


def test_grows_row_by_row() -> None:
    index = IdIndex(1)
    numbers = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 5_000)
    for number in numbers:
        index.add(_ints([number]), [_ints([number])])
    keys, columns = index.find(np.sort(numbers))
    assert sorted(keys.tolist()) == sorted(numbers.tolist())
    assert columns[0].tolist() == keys.tolist()


def test_a_key_of_very_many_rows_is_found_whole_beside_others() -> None:
    index = IdIndex(1)
    crowd = 100_000
    index.add(np.full(crowd, 5), [np.arange(crowd)])
    index.add(_ints([5 + 2**62, 6]), [_ints([-1, -2])])
    keys, columns = index.find(_ints([5, 6, 7, 5 + 2**62]))
    assert sorted(columns[0].tolist()) == [-2, -1, *range(crowd)]
    assert np.array_equal(keys == 5, columns[0] >= 0)


def _ints(values: object) -> np.ndarray:
    return np.array(values, np.int64)
