"""In which parts late rows of a load are folded."""

from __future__ import annotations

import pytest

from headgate.history.loads.replay_planner import SLICE, first_part


@pytest.mark.parametrize(
    ("times", "slices"),
    [
        ({5: 1}, (5, 6)),
        ({5: 1, 9: 1}, (5, 10)),
        ({5: 10, 9: 1}, (5, 6)),
        ({9: 1, 5: 9, 7: 1}, (5, 8)),
        ({-3: 20, 2: 20}, (-3, -2)),
    ],
)
def test_a_part_has_about_so_many_rows(times: dict[int, int], slices: tuple[int, int]) -> None:
    begin, end = slices
    assert first_part(times, 10) == (begin * SLICE, end * SLICE)
