"""How many batches a step of a stage takes."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from headgate.lake.tables import history
from headgate.lake.tables.history import grouped


@dataclass(frozen=True)
class Part:
    rows: int


def sizes(rows: list[int], most_rows: int) -> list[list[int]]:
    groups = grouped(map(Part, rows), most_rows)
    return [[part.rows for part in group] for group in groups]


@pytest.mark.parametrize(
    ("most_rows", "groups"),
    [
        (10, [[4, 3, 3], [1, 0, 0], [20], [2]]),
        (0, [[4], [3], [3], [1], [0], [0], [20], [2]]),
        (100, [[4, 3, 3], [1, 0, 0], [20, 2]]),
    ],
)
def test_a_step_has_a_number_of_rows_and_of_batches_at_most(
    monkeypatch: pytest.MonkeyPatch, most_rows: int, groups: list[list[int]]
) -> None:
    monkeypatch.setattr(history, "PARTS_PER_STEP", 3)
    assert sizes([4, 3, 3, 1, 0, 0, 20, 2], most_rows) == groups
    assert sizes([], most_rows) == []
