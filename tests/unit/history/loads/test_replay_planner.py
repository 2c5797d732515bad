"""In which parts late rows of a load are folded."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.declaration.load import load
from headgate.flow.sources.loading import LoadPlan
from headgate.history.loads.replay_planner import SLICE, ReplayPlanner, first_part
from headgate.history.loads.requests import LoadRequest
from headgate.lake.tables.load import Load
from tests.unit.insight.ledger.conftest import Lake
from tests.unit.insight.ledger.test_joins import OF_JOIN, TEXT
from tests.unit.insight.ledger.test_joins import fill as fill_joined


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


def test_a_load_waits_for_a_join_of_its_rows(tmp_path: Path) -> None:
    file = tmp_path / "tiny.yml"
    file.write_text(TEXT)
    lake = fill_joined(Lake(tmp_path / "lake", load(file), OF_JOIN))
    plan = LoadPlan({"sequence": 0}, {"sequence": 3}, "3 files of a", "files")
    now = datetime(2026, 5, 4, 12, tzinfo=UTC)

    def behind(source: str, n: int) -> list[str]:
        request = LoadRequest("l-1", source, plan, "me", now)
        planner = ReplayPlanner(lake.layout, lake.pipeline, request)
        return planner.behind(Load("l-1", 1, n, {"sequence": 3}, 30))

    assert behind("events", 2) == ["pairs"]
    assert behind("events", 1) == []
    assert behind("another", 2) == []
