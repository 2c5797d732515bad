"""The dashboard over tables that the stages have written."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.insight.dashboard.questions import about, overview
from headgate.insight.dashboard.questions.reader import Reader
from headgate.insight.dashboard.questions.rows import RowsQuestion, rows
from headgate.insight.dashboard.questions.selection import Selection
from headgate.insight.dashboard.questions.view import GoldView
from headgate.insight.dashboard.reading.shown import Shown
from tests.support.gated import COLUMN, TABLE, GatedProject
from tests.support.polling import Values

pytestmark = pytest.mark.spark


class Page:
    """What a browser that stays open shows of the table."""

    def __init__(self, shown: Shown) -> None:
        self.shown, self.reader = shown, Reader()

    def totals(self) -> Values:
        gold = GoldView.of(self.reader, self.shown, TABLE)
        found = rows(gold, RowsQuestion(Selection(), size=200))
        place = found["columns"].index(COLUMN)
        return tuple(sorted(int(row[place]) for row in found["cells"]))

    def held(self) -> list[str] | None:
        said = about.held(self.shown, TABLE)
        return None if said is None else list(said["rules"])


def test_a_held_version_is_never_shown(tmp_path: Path, spark: SparkSession) -> None:
    project = GatedProject(tmp_path, spark)
    project.deliver("good")
    engine = project.catch_up(project.engine())
    page = Page(Shown.of(engine.pipeline, str(project.root)))
    for table in page.shown.tables.values():
        table._fresh = 0.0
    assert (page.totals(), page.held()) == (project.version(1), None)
    project.deliver("bad")
    engine = project.catch_up(engine)
    assert project.hold(engine) is not None
    assert (page.totals(), page.held()) == (project.version(1), ["sane"])
    project.release(engine)
    project.catch_up(engine)
    assert page.totals() == project.version(2)
    said = overview.ledger(page.shown)
    assert (said["balanced"], said["read"]) == (True, 2)
