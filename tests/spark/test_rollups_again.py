"""Rollups that are built again, that become rollups, and that a restore brings back behind the
table that they read; and rows that a drain, or a watermark, makes final."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.driver.task import RebuildRequest
from headgate.history.recompute.computing import recompute
from headgate.history.recompute.plan import WHOLE
from headgate.history.savepoints.deployment import deployment_of
from headgate.insight.ledger import balance
from headgate.lake.tables.history import lineage
from tests.support.engine import Engine
from tests.support.landing import Landing, lines
from tests.support.tables import read
from tests.support.toys import toys

pytestmark = pytest.mark.spark

DAY = datetime(2018, 10, 24, tzinfo=UTC)
EVERYTHING: dict[str, Any] = {"from": None, "to": None, "keys": {}}
BASE = """
pipeline: readings
sources:
  raw:
    files: {path: "LANDING", format: json, order: name, settle: 0 s}
    record:
      event_id: [id]
      event_time: {column: at}
      schema: {id: string, site: string, at: timestamp}
silver: {clean: {from: raw}}
gold:
  hours:
    from: clean
    window: {tumbling: 1 hour}
    by: [site]
    measures: {events: count(*)}
    allowed_lateness: 0 s
"""
OF_SILVER = """
  days:
    from: clean
    window: {tumbling: 1 day}
    measures: {total: count(*)}
    allowed_lateness: 0 s
"""
OF_HOURS = """
  days:
    from: hours
    window: {tumbling: 1 day}
    measures: {total: sum(events)}
    allowed_lateness: 0 s
"""
HOPPING = """
  days:
    from: hours
    window: {hopping: {size: 6 hours, every: 3 hours}}
    by: [site]
    measures: {total: sum(events)}
    allowed_lateness: 0 s
"""


@dataclass
class Project:
    spark: SparkSession
    folder: Path
    files: int = 0

    def declare(self, *tables: str) -> None:
        text = BASE.replace("LANDING", str(self.folder / "landing")) + "".join(tables)
        (self.folder / "readings.yml").write_text(text)

    def engine(self, *anew: str, changed: bool = False) -> Engine:
        asked = RebuildRequest(anew, changed=changed)
        pipeline = load(self.folder / "readings.yml")
        return Engine(self.spark, pipeline, self.folder / "root", anew=asked)

    def deliver(self, engine: Engine, *hours: float, sites: Sequence[str] = "a") -> None:
        """A batch with an event of each hour and site."""
        self.files += 1
        events = (
            {
                "id": f"{self.files}-{site}-{hour}",
                "site": site,
                "at": (DAY + timedelta(hours=hour)).isoformat(),
            }
            for hour in hours
            for site in sites
        )
        made = lines([json.dumps(each).encode() for each in events])
        Landing(self.folder / "landing").write(f"{self.files:05d}.json", made)
        engine.run_all()

    def totals(self) -> list[int]:
        rows = read(self.folder / "root", "gold/days")
        return [row["total"] for row in sorted(rows, key=lambda row: row["window_start"])]


def is_as_defined(engine: Engine) -> bool:
    tables = dict.fromkeys(engine.pipeline.gold, WHOLE)
    found = recompute(engine.spark, engine.layout, engine.pipeline, tables, engine.now)
    return found.holds and balance(engine.layout, engine.pipeline).balanced


@pytest.fixture
def project(spark: SparkSession, tmp_path: Path) -> Project:
    (tmp_path / "landing").mkdir()
    return Project(spark, tmp_path)


def test_a_table_becomes_a_rollup_and_is_built_again_alone(project: Project) -> None:
    project.declare(OF_SILVER)
    engine = project.engine()
    for hours in ((1, 2, 3), (30, 31), (4, 60)):
        project.deliver(engine, *hours)
    for table in ("days", "hours"):
        engine.operate("late_replay", table=table, **EVERYTHING)
    engine.catch_up()
    assert project.totals() == [4, 2, 1]

    project.declare(OF_HOURS)
    engine = project.engine(changed=True)
    for _ in range(2):
        engine.catch_up()
    assert project.totals() == [4, 2], "the last hour is open"
    assert is_as_defined(engine)

    project.declare(OF_HOURS.replace("sum(events)", "sum(events + 1)"))
    engine = project.engine(changed=True)
    engine.catch_up()
    assert project.totals() == [8, 4]
    engine = project.engine("gold/days")
    project.deliver(engine, 61)
    engine.catch_up()
    assert project.totals() == [8, 4, 2]
    assert is_as_defined(engine)


def test_a_change_of_the_table_that_is_read_is_planned_as_a_rebuild(project: Project) -> None:
    project.declare(OF_HOURS)
    engine = project.engine()
    file = engine.pipeline.file
    file.write_text(file.read_text().replace("count(*)}", "count(*), first: min(site)}", 1))
    plans = deployment_of(engine.layout, load(file)).tables
    found = {each.table: (each.action, *each.reasons) for each in plans}
    assert found["gold/days"] == ("rebuild", "gold/hours changes")


def test_a_watermark_makes_rows_final_beside_a_correction(project: Project) -> None:
    project.declare(HOPPING)
    engine = project.engine()
    project.deliver(engine, 2, sites="ab")
    engine.operate("drain")
    engine.catch_up()
    project.deliver(engine, 4, sites="ab")
    project.deliver(engine, 5.5)
    project.deliver(engine, 20)
    rows = read(project.folder / "root", "gold/days")
    ended = [row for row in rows if row["window_end"] <= DAY + timedelta(hours=20)]
    assert {row["site"] for row in ended} == {"a", "b"}
    assert all(row["final"] for row in ended)
    assert is_as_defined(engine)


def test_a_table_that_cannot_follow_is_compared_with_all_rows(project: Project) -> None:
    """As after the restore of a savepoint at which it was behind."""
    project.declare(OF_HOURS)
    engine = project.engine()
    for hours in ((1, 2, 3), (30, 31)):
        project.deliver(engine, *hours)
    engine.runtime.stages.leave_out(["gold/days"])
    project.deliver(engine, 4, 60)
    engine.operate("late_replay", table="hours", **EVERYTHING)
    engine.catch_up()
    assert project.totals() == [3, 1]
    above = engine.runtime.table("gold/hours").reader()
    for path in (path for commit in lineage(above) for path in commit.removed):
        above.storage.remove(path)
    engine = project.engine()
    engine.catch_up()
    assert project.totals() == [4, 2]
    assert is_as_defined(engine)
    project.deliver(engine, 90)
    assert project.totals() == [4, 2, 1]
    assert is_as_defined(engine)


VISITS = """
  stretches:
    from: hours
    window: {session: 3 hours}
    by: [site]
    measures: {total: sum(events)}
    allowed_lateness: 0 s
  days:
    from: stretches
    window: {tumbling: 1 day}
    measures: {total: sum(total)}
    allowed_lateness: 0 s
publish:
  days: {from: gold.days, when: update, jsonl: {path: "DAYS"}}
"""


def test_a_topic_loses_what_a_drain_moves_to_another_day(project: Project) -> None:
    """A session that a drain has closed goes on after midnight, and a second drain closes it
    again: it then belongs to the next day."""
    sent = project.folder / "days.jsonl"
    with toys():
        project.declare(VISITS.replace("DAYS", str(sent)))
        engine = project.engine()
        project.deliver(engine, 19, 20)
        engine.operate("drain")
        engine.catch_up()
        project.deliver(engine, 22.5)
        engine.operate("drain")
        engine.catch_up()
        assert is_as_defined(engine)
        engine.publish()
        kept = {}
        for message in map(json.loads, sent.read_text().splitlines()):
            kept[message["key"]] = message["value"]
        found = [value["total"] for value in kept.values() if value is not None]
        assert sorted(found) == sorted(project.totals())
        assert None in kept.values()
