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

from headgate.declaration.contracts.operation import REJECTED_FOR
from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.driver.task import RebuildRequest
from headgate.history.recompute.computing import recompute
from headgate.history.recompute.plan import WHOLE
from headgate.history.savepoints.clone import clone_savepoint
from headgate.history.savepoints.deployment import deployment_of
from headgate.insight.ledger import balance, deployed
from headgate.insight.ledger.by_id import by_id
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.history import lineage
from tests.support.compacted import kept
from tests.support.engine import Engine
from tests.support.landing import Landing, lines
from tests.support.tables import Row, read, state
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
MONTHS = """
  months:
    from: days
    window: {calendar: {unit: month, zone: UTC}}
    measures: {days: count(*), total: sum(total)}
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
EVER = """
  ever:
    from: hours
    running: true
    by: [site]
    measures: {total: sum(events)}
"""


@dataclass
class Project:
    spark: SparkSession
    folder: Path
    files: int = 0

    def __post_init__(self) -> None:
        self.root = self.folder / "root"

    def declare(self, *tables: str) -> None:
        text = BASE.replace("LANDING", str(self.folder / "landing")) + "".join(tables)
        (self.folder / "readings.yml").write_text(text)

    def engine(self, *anew: str, changed: bool = False) -> Engine:
        asked = RebuildRequest(anew, changed=changed)
        pipeline = load(self.folder / "readings.yml")
        return Engine(self.spark, pipeline, self.root, anew=asked)

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

    def rows(self, table: str) -> list[Row]:
        rows = read(self.root, f"gold/{table}")
        return sorted(rows, key=lambda row: row["window_start"])

    def totals(self, table: str = "days") -> list[int]:
        return [row["total"] for row in self.rows(table)]

    def final(self, table: str) -> list[bool]:
        return [row["final"] for row in self.rows(table)]


def is_as_defined(engine: Engine) -> bool:
    tables = dict.fromkeys(engine.pipeline.gold, WHOLE)
    found = recompute(engine.spark, engine.layout, engine.pipeline, tables, engine.now)
    return found.holds and balance(engine.layout, engine.pipeline).balanced


def vacuum(engine: Engine, path: str) -> None:
    """Delete the files that commits of a table have removed: what is left cannot be followed."""
    table = engine.runtime.table(path).reader()
    for removed in (removed for commit in lineage(table) for removed in commit.removed):
        table.storage.remove(removed)


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


def test_a_drain_leaves_totals_over_all_time_open(project: Project) -> None:
    """They go on after it. A late row of a drained hour corrects them."""
    project.declare(EVER)
    engine = project.engine()

    def ever() -> list[tuple[int, bool, int]]:
        rows = read(project.root, "gold/ever")
        return [(row["total"], row["final"], row["revision"]) for row in rows]

    project.deliver(engine, 2, 3)
    assert ever() == [(1, False, 0)]
    engine.drain()
    assert ever() == [(2, False, 0)]
    assert state(project.root, "gold/ever")["closed_through"] is None
    assert is_as_defined(engine)
    project.deliver(engine, 3.5, 5, 6)
    assert ever() == [(3, False, 0)]
    engine.operate("late_replay", table="hours", **EVERYTHING)
    engine.drain()
    assert ever() == [(5, False, 0)]
    assert state(project.root, "gold/ever")["open"] == 1
    assert is_as_defined(engine)


def test_a_watermark_makes_rows_final_beside_a_correction(project: Project) -> None:
    project.declare(HOPPING)
    engine = project.engine()
    project.deliver(engine, 2, sites="ab")
    engine.operate("drain")
    engine.catch_up()
    project.deliver(engine, 4, sites="ab")
    project.deliver(engine, 5.5)
    project.deliver(engine, 20)
    rows = project.rows("days")
    ended = [row for row in rows if row["window_end"] <= DAY + timedelta(hours=20)]
    assert {row["site"] for row in ended} == {"a", "b"}
    assert all(row["final"] for row in ended)
    assert is_as_defined(engine)


def test_a_table_that_cannot_follow_is_compared_with_all_rows(project: Project) -> None:
    """As after the restore of a savepoint at which it was behind. Its commit then contains an
    operation and the batches around it, and its own rollup follows all of these."""
    project.declare(OF_HOURS, MONTHS)
    engine = project.engine()
    for hours in ((1, 2, 3), (30, 31)):
        project.deliver(engine, *hours)
    engine.runtime.stages.leave_out(["gold/days"])
    project.deliver(engine, 2.5, 60)
    engine.operate("late_replay", table="hours", **EVERYTHING)
    project.deliver(engine, 61)
    assert project.totals() == [3, 1]
    vacuum(engine, "gold/hours")
    engine = project.engine()
    engine.catch_up()
    assert project.totals() == [4, 2, 1]
    assert project.totals("months") == [6]
    assert is_as_defined(engine)
    project.deliver(engine, 90)
    assert project.totals() == [4, 2, 2]
    assert project.totals("months") == [8]
    assert is_as_defined(engine)


def test_a_copy_of_a_savepoint_whose_table_was_behind(project: Project) -> None:
    """The copy has no files that the replay has removed, so the table cannot follow it there."""
    project.declare(OF_HOURS)
    engine = project.engine()
    project.deliver(engine, 1, 2, 3)
    engine.runtime.stages.leave_out(["gold/days"])
    project.deliver(engine, 2.5, 30, 60)
    engine.operate("late_replay", table="hours", **EVERYTHING)
    engine.catch_up()
    assert project.totals() == [2], "the table is behind"
    root = project.folder / "copy"
    clone_savepoint(engine.layout, engine.savepoint(), Layout.of(str(root), "readings"))
    copy = Engine(project.spark, engine.pipeline, root)
    copy.catch_up()
    project.root = root
    assert project.totals() == [4, 1]
    assert is_as_defined(copy)


def test_a_drain_that_was_rejected_above_closes_nothing(project: Project) -> None:
    """Whether or not the table in between has an open row, too."""
    project.declare(OF_HOURS, MONTHS)
    engine = project.engine()
    rejected = {REJECTED_FOR: {"hours": {"by": "anna", "reason": "not yet", "at": "now"}}}
    project.deliver(engine, 1, 2)
    engine.operate("drain", **rejected)
    engine.catch_up()
    assert (project.final("hours"), project.final("days")) == ([True, False], [False])
    project.deliver(engine, 25)
    engine.operate("drain", **rejected)
    engine.catch_up()
    assert (project.final("days"), project.final("months")) == ([True], [False])
    project.deliver(engine, 26)
    assert project.totals() == [2, 1]
    assert {row["revision"] for row in project.rows("days")} == {0}
    assert is_as_defined(engine)


def test_a_column_hides_the_window_of_the_row(project: Project) -> None:
    """A measure may have the name of its table."""
    project.declare(OF_HOURS.replace("sum(events)", "sum(hours)"))
    file = project.folder / "readings.yml"
    file.write_text(file.read_text().replace("events: count(*)", "hours: count(*)"))
    engine = project.engine()
    project.deliver(engine, 1, 1.5, 2, 3)
    assert project.totals() == [3]
    assert is_as_defined(engine)


def test_the_ledger_of_tables_that_were_just_added(project: Project) -> None:
    """Before they are deployed, before their first batch, and after it."""

    def holds(of: Pipeline) -> bool:
        return balance(engine.layout, of).balanced and by_id(engine.layout, of).holds

    project.declare()
    engine = project.engine()
    project.deliver(engine, 1, 2, 30, 31, 60)
    project.declare(OF_HOURS, MONTHS)
    declared = load(project.folder / "readings.yml")
    assert [*deployed(engine.layout, declared).gold] == ["hours"]
    assert holds(deployed(engine.layout, declared))
    engine = project.engine(changed=True)
    assert holds(engine.pipeline)
    engine.catch_up()
    assert project.totals() == [2, 2]
    assert project.totals("months") == [4]
    assert holds(engine.pipeline)
    assert is_as_defined(engine)


STRETCHES = """
  stretches:
    from: hours
    window: {session: 3 hours}
    by: [site]
    measures: {total: sum(events)}
    allowed_lateness: 0 s
"""
OF_STRETCHES = """
  days:
    from: stretches
    window: {tumbling: 1 day}
    measures: {total: sum(total)}
    allowed_lateness: 0 s
"""
TRIPS = """
  trips:
    from: stretches
    window: {session: 5 hours}
    measures: {total: sum(total)}
    allowed_lateness: 0 s
"""


def published(folder: Path, *tables: str) -> str:
    sink = '  {0}: {{from: gold.{0}, when: update, jsonl: {{path: "{1}/{0}.jsonl"}}}}\n'
    return "publish:\n" + "".join(sink.format(table, folder) for table in tables)


def test_a_topic_loses_what_a_drain_moves(project: Project) -> None:
    """A session that a drain has closed goes on after midnight, and a second drain closes it
    again: it then belongs to the next day. The trip that begins with it is still open, because its
    table was added after the first drain, and could not follow it."""
    with toys():
        project.declare(STRETCHES, OF_STRETCHES, published(project.folder, "days"))
        engine = project.engine()
        project.deliver(engine, 19, 20)
        engine.operate("drain")
        engine.catch_up()
        project.deliver(engine, 19.5)
        engine.operate("late_replay", table="hours", **EVERYTHING)
        engine.catch_up()
        vacuum(engine, "gold/stretches")
        project.declare(STRETCHES, OF_STRETCHES, TRIPS, published(project.folder, "days", "trips"))
        engine = project.engine(changed=True)
        project.deliver(engine, 22.5)
        assert project.final("trips") == [False]
        engine.operate("drain")
        engine.catch_up()
        assert is_as_defined(engine)
        engine.publish()
    for table in ("days", "trips"):
        sent = project.folder / f"{table}.jsonl"
        (row,), (found,) = project.rows(table), kept(sent)
        assert datetime.fromisoformat(found["window_start"]) == row["window_start"]
        assert found["total"] == row["total"] == 4
        assert len({json.loads(line)["key"] for line in sent.read_text().splitlines()}) == 2
