"""The index against a plain list of pairs."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.bronze.id_index import IdIndex

# Few keys, so that batches share them; negative and large ones, as hashes are.
KEYS = st.sampled_from([-(2**63), -9, -1, 0, 1, 7, 8, 2**40, 2**63 - 1])
BATCHES = st.lists(st.lists(KEYS, max_size=12), max_size=40)


@settings(max_examples=200, deadline=None)
@given(BATCHES, st.sets(KEYS), st.integers(1, 40))
def test_finds_all_rows_of_all_batches(
    batches: list[list[int]], wanted: set[int], half: int
) -> None:
    index = IdIndex(1)
    held: list[tuple[int, int]] = []
    for number, batch in enumerate(batches):
        rows = [(key, number * 100 + i) for i, key in enumerate(batch)]
        index.add(_ints(batch), _ints([row for _, row in rows]).reshape(-1, 1))
        held += rows
        if number == half:
            index.keep(index.values(0) % 2 == 0)
            held = [(key, row) for key, row in held if row % 2 == 0]
    keys, values = index.find(_ints(sorted(wanted)))
    found = sorted(zip(keys.tolist(), values[:, 0].tolist(), strict=True))
    assert found == sorted((key, row) for key, row in held if key in wanted)
    assert len(index) == len(held)


def test_runs_are_merged() -> None:
    index = IdIndex(1)
    numbers = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 5_000)
    for number in numbers:
        index.add(_ints([number]), _ints([[number]]))
    keys, _ = index.find(np.sort(numbers))
    assert sorted(keys.tolist()) == sorted(numbers.tolist())
    assert len(index._runs) < 5 * 8


def _ints(values: object) -> np.ndarray:
    return np.array(values, np.int64)
