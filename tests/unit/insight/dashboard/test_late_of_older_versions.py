"""A late table that an older version has made has no column for what is replayed: no row is."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from headgate.declaration.load import load
from headgate.insight.dashboard.questions.reader import Reader
from headgate.insight.dashboard.questions.refused import RefusedQuestion, late_rows
from headgate.insight.dashboard.questions.selection import Selection
from headgate.insight.dashboard.questions.series import SeriesQuestion, series
from headgate.insight.dashboard.questions.view import GoldView, TableView
from headgate.insight.dashboard.reading.shown import Shown

STORED = Path(__file__).parents[3] / "data" / "lake-of-format-3.zip"


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    with ZipFile(STORED) as archive:
        archive.extractall(tmp_path)
    return Shown.of(load(tmp_path / "pipelines/shop.yml"), str(tmp_path / "lake"))


def late_count(shown: Shown) -> int:
    return shown.existing("late/sales_per_hour").rows


def test_all_late_rows_are_marked_in_a_chart(shown: Shown, reader: Reader) -> None:
    view = GoldView.of(reader, shown, "sales_per_hour")
    question = SeriesQuestion(view.facts.figure("orders"), (), Selection())
    found = series(view, question)
    assert late_count(shown) > 0
    assert sum(found["late"]) == late_count(shown)


def test_a_page_of_late_rows(shown: Shown, reader: Reader) -> None:
    view = TableView(reader, shown.existing("late/sales_per_hour"))
    found = late_rows(view, RefusedQuestion(), ("window_start", "window_end"))
    assert found["replayed"] == 0
    assert found["seconds"]["max"] > 0
    assert len(found["cells"]) == late_count(shown)
