"""Gold tables that read gold tables, through batches, kills, restarts, drains, late replays,
backfills and restores."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.driver.task import RebuildRequest
from headgate.errors import UsageError
from headgate.flow.gates import documents
from headgate.history.backfill.selection import EventTimeRange
from headgate.history.recompute.computing import recompute
from headgate.history.recompute.plan import WHOLE
from headgate.insight.ledger import balance
from headgate.insight.ledger.by_id import by_id
from headgate.insight.status.held_versions import rejectable
from tests.support.backfilled import backfill, publish, unequal
from tests.support.engine import Engine
from tests.support.failing import catch_up_despite, failing
from tests.support.landing import Landing, split
from tests.support.readings import NOON
from tests.support.rounds import in_full
from tests.support.suite_project import SuiteProject
from tests.support.tables import Row, read, state
from tests.support.toys import toys

pytestmark = pytest.mark.spark

DECLARATION = """
pipeline: readings
sources:
  raw:
    files: {{path: "{landing}", format: json, order: name, settle: 0 s}}
    record:
      event_id: [id]
      event_time: {{column: at}}
      schema: {{id: string, site: string, level: int, at: timestamp}}
silver: {{clean: {{from: raw}}}}
gold:
  weeks:
    from: days
    window: {{calendar: {{unit: week, zone: Europe/Berlin}}}}
    measures: {{days: count(*), total: sum(total), best: "max_by(site, total)"}}
    allowed_lateness: 6 hours
  days:
    from: hours
    window: {{calendar: {{unit: day, zone: Europe/Berlin}}}}
    by: [site]
    measures:
      rows: count(*)
      events: sum(events)
      total: sum(total)
      busiest: max_by(hours.window_start, events)
      opening: first(total)
    allowed_lateness: 6 hours
  hours:
    from: clean
    window: {{tumbling: 1 hour}}
    by: [site]
    measures: {{events: count(*), total: sum(level)}}
    allowed_lateness: 6 hours
  quarters:
    from: hours
    window: {{hopping: {{size: 6 hours, every: 3 hours}}}}
    by: {{busy: "events >= 3"}}
    where: events > 1
    measures: {{rows: count(*), total: sum(total)}}
    allowed_lateness: 8 hours
  stretches:
    from: hours
    window: {{session: 2 hours}}
    by: [site]
    where: events > 1
    measures: {{rows: count(*), total: sum(total)}}
    allowed_lateness: 6 hours
  visits:
    from: clean
    window: {{session: 40 minutes}}
    by: [site]
    measures: {{events: count(*)}}
    allowed_lateness: 6 hours
  visits_per_day:
    from: visits
    window: {{tumbling: 1 day}}
    measures: {{visits: count(*), events: sum(events), longest: max(events)}}
    allowed_lateness: 6 hours
"""
DAY, HOUR, MICRO = timedelta(days=1), timedelta(hours=1), timedelta(microseconds=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BEGIN = datetime(2018, 10, 24, tzinfo=UTC)
"""On 28 October, the day has 25 hours in Berlin."""
BERLIN = ZoneInfo("Europe/Berlin")
FILES = 4
PLACES = ("gold.committed", "late.committed")
EVERYTHING: dict[str, Any] = {"from": None, "to": None, "keys": {}}
ROLLUPS = ("days", "quarters", "stretches", "visits_per_day", "weeks")


def declare(folder: Path, landing: Landing) -> Pipeline:
    file = folder / "readings.yml"
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(DECLARATION.format(landing=landing.folder))
    return load(file)


def events(count: int, seed: int) -> list[bytes]:
    """Twelve days, mostly in order; some events are late by hours or days."""
    chance, made = random.Random(seed), []
    for number in range(count):
        at = BEGIN + 12 * DAY * number / count
        dice = chance.random()
        if dice < 0.2:
            at -= chance.random() * 12 * HOUR
        elif dice < 0.3:
            at -= chance.random() * 3 * DAY
        event = {"id": f"r-{number}", "site": chance.choice("ab"), "level": chance.randrange(9)}
        made.append(json.dumps({**event, "at": at.isoformat()}).encode())
    return made


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Landing:
    landing = Landing(tmp_path_factory.mktemp("landing"))
    landing.write_all(split(events(600, seed=5), FILES))
    return landing


Key = tuple[Any, ...]


def local(at: datetime, unit: timedelta) -> tuple[datetime, datetime]:
    """The day or week in Berlin that contains a time."""
    there = at.astimezone(BERLIN).replace(hour=0, minute=0, second=0, microsecond=0)
    if unit > DAY:
        there -= there.weekday() * DAY
    end = (there.replace(tzinfo=None) + unit).replace(tzinfo=BERLIN)
    return there.astimezone(UTC), end.astimezone(UTC)


def hopping(at: datetime) -> Iterator[tuple[datetime, datetime]]:
    start = (at - EPOCH) // (3 * HOUR) * (3 * HOUR) + EPOCH
    yield from ((s, s + 6 * HOUR) for s in (start, start - 3 * HOUR))


def defined(table: str, above: list[Row]) -> Mapping[Key, Key]:
    """The rows of a rollup, by their definition, for the final rows of the table that it reads."""
    groups: dict[Key, list[Row]] = defaultdict(list)
    rows = sorted(
        ({**row, "at": row["window_end"] - MICRO} for row in above), key=lambda r: r["at"]
    )
    for row in rows:
        if table == "days":
            groups[(*local(row["at"], DAY), row["site"])].append(row)
        elif table == "weeks":
            groups[local(row["at"], 7 * DAY)].append(row)
        elif table == "visits_per_day":
            start = (row["at"] - EPOCH) // DAY * DAY + EPOCH
            groups[start, start + DAY].append(row)
        elif row["events"] <= 1:
            continue
        elif table == "quarters":
            for window in hopping(row["at"]):
                groups[(*window, row["events"] >= 3)].append(row)
        else:
            last = max((k for k in groups if k[2] == row["site"]), default=None)
            joins = last is not None and row["at"] <= last[1]
            joined = groups.pop(last) if joins and last else []
            begin = last[0] if joins and last else row["at"]
            groups[begin, row["at"] + 2 * HOUR, row["site"]] = [*joined, row]
    return {key: values(table, rows) for key, rows in groups.items()}


def values(table: str, rows: list[Row]) -> Key:
    def total(name: str) -> int:
        return sum(row[name] for row in rows)

    if table == "days":
        most = max(row["events"] for row in rows)
        busiest = {row["window_start"] for row in rows if row["events"] == most}
        return len(rows), total("events"), total("total"), busiest, rows[0]["total"]
    if table == "weeks":
        most = max(row["total"] for row in rows)
        return len(rows), total("total"), {r["site"] for r in rows if r["total"] == most}
    if table == "visits_per_day":
        return len(rows), total("events"), max(row["events"] for row in rows)
    return len(rows), total("total")


READ = {
    "days": "rows events total busiest opening",
    "weeks": "days total best",
    "visits_per_day": "visits events longest",
    "quarters": "rows total",
    "stretches": "rows total",
}
BY = {"days": "site", "quarters": "busy", "stretches": "site"}


def check(engine: Engine) -> None:
    for table in ROLLUPS:
        declared = engine.pipeline.gold[table]
        above = [row for row in read(engine.root, f"gold/{declared.reads}") if row["final"]]
        wanted, gold = defined(table, above), read(engine.root, f"gold/{table}")
        by = BY.get(table)
        found = {
            (row["window_start"], row["window_end"], *([row[by]] if by else [])): row
            for row in gold
        }
        assert len(found) == len(gold)
        assert found.keys() == wanted.keys(), table
        through = final_through(engine, table)
        for key, row in found.items():
            for name, value in zip(READ[table].split(), wanted[key], strict=True):
                either = value if isinstance(value, set) else {value}
                assert row[name] in either, (table, key, name)
            end = key[1] + MICRO if table == "stretches" else key[1]
            assert row["final"] == (end <= through), (table, key)
    assert balance(engine.layout, engine.pipeline).balanced
    proof = by_id(engine.layout, engine.pipeline)
    assert proof.holds, proof


def final_through(engine: Engine, table: str) -> datetime:
    said = state(engine.root, f"gold/{table}")
    lateness = engine.pipeline.gold[table].allowed_lateness
    ends = [said["watermark"] and EPOCH + said["watermark"] * MICRO - lateness]
    ends.append(said["closed_through"] and EPOCH + said["closed_through"] * MICRO)
    return max((end for end in ends if end), default=EPOCH)


def content(engine: Engine) -> Mapping[str, set[Key]]:
    """The rows of all rollups, with their revisions."""
    return {
        table: {
            tuple((name, row[name]) for name in sorted(row) if name != "updated_at")
            for row in read(engine.root, f"gold/{table}")
        }
        for table in ROLLUPS
    }


def revisions(engine: Engine, table: str) -> set[int]:
    return {row["revision"] for row in read(engine.root, f"gold/{table}")}


def recomputed(engine: Engine, *tables: str, range_: EventTimeRange = WHOLE) -> bool:
    names = tables or ROLLUPS
    found = recompute(
        engine.spark, engine.layout, engine.pipeline, dict.fromkeys(names, range_), engine.now
    )
    return found.holds


@in_full  # short runs: test_operator_contract.py
def test_corrections_travel_whatever_the_batches(
    spark: SparkSession, tmp_path: Path, landing: Landing
) -> None:
    pipeline = declare(tmp_path, landing)
    assert [*pipeline.gold][-1] in ROLLUPS, "a table comes after the one that it reads"
    whole = Engine(spark, pipeline, tmp_path / "whole").run_all()
    check(whole)
    engine = Engine(spark, pipeline, tmp_path / "root")
    catch_up_despite(engine, PLACES)
    for end in (3, FILES):
        engine.ingest(end)
        engine.catch_up()
        check(engine)
    assert content(engine) == content(whole)

    before = engine.savepoint()
    for each in (whole, engine):
        for table in ("hours", "visits"):
            each.operate("late_replay", table=table, **EVERYTHING)
        each.catch_up()
        check(each)
        assert recomputed(each)
    assert content(engine) == content(whole)
    assert all(revisions(engine, table) == {0, 1} for table in ("days", "stretches"))
    assert 1 in revisions(engine, "weeks")

    engine.restore(before)
    engine = Engine(spark, pipeline, engine.root)
    engine.catch_up()
    check(engine)
    assert content(engine) == content(whole), "replays are carried out again"


@in_full  # short runs: test_operator_contract.py
def test_drains_backfills_and_new_tables(
    spark: SparkSession, tmp_path: Path, landing: Landing
) -> None:
    pipeline = declare(tmp_path, landing)
    engine = Engine(spark, pipeline, tmp_path / "root")
    engine.list_new()
    for end in (2, 3):
        engine.ingest(end)
        engine.operate("drain")
        with failing("operation.table_done"):
            engine.catch_up()
        engine.start()
        engine.catch_up()
        check(engine)
        assert all(row["final"] for table in ROLLUPS for row in read(engine.root, f"gold/{table}"))
    engine.ingest(FILES)
    engine.catch_up()
    check(engine)
    assert 1 in revisions(engine, "days"), "hours after a drain correct the drained day"
    engine.operate("late_replay", table="hours", **EVERYTHING)
    engine.catch_up()
    check(engine)

    other = load(edited(pipeline.file, "total: sum(level)", "total: sum(level + 1)", "other.yml"))
    names = ("hours", "visits")
    outcome = backfill(engine, begin=BEGIN - 10 * DAY, tables=names, used=other)
    assert [each.table for each in unequal(outcome)] == ["hours"]
    publish(engine, outcome)
    before = {row["window_start"]: row["total"] for row in read(engine.root, "gold/weeks")}
    engine.take_in()
    check(engine)
    after = {row["window_start"]: row["total"] for row in read(engine.root, "gold/weeks")}
    assert before.keys() == after.keys()
    assert all(before[week] < after[week] for week in before)
    assert recomputed(engine)
    check_rebuilds(engine)


def edited(file: Path, old: str, new: str, name: str) -> Path:
    text = file.read_text()
    assert old in text
    other = file.with_name(name)
    other.write_text(text.replace(old, new))
    return other


ANOTHER = """
  everything:
    from: hours
    window: {tumbling: 366 days}
    measures: {rows: count(*), total: sum(total)}
    allowed_lateness: 6 hours
"""


def check_rebuilds(engine: Engine) -> None:
    """A new table begins with all rows that the other one has, also corrected ones. A rebuild of
    the table that others read rebuilds them."""
    file = engine.pipeline.file
    file.write_text(file.read_text() + ANOTHER)
    engine = Engine(engine.spark, load(file), engine.root, anew=RebuildRequest(changed=True))
    engine.catch_up()
    check(engine)
    assert recomputed(engine, *ROLLUPS, "everything")
    assert read(engine.root, "gold/everything")

    total = sum(row["total"] for row in read(engine.root, "gold/weeks"))
    edited(file, "total: sum(level)", "total: sum(level + 2)", file.name)
    engine = Engine(engine.spark, load(file), engine.root, anew=RebuildRequest(changed=True))
    engine.catch_up()
    check(engine)
    assert sum(row["total"] for row in read(engine.root, "gold/weeks")) > total
    assert recomputed(engine, *ROLLUPS, "everything")


GATED = """
silver:
  clean: {from: raw}
gold:
  per_minute:
    from: clean
    window: {tumbling: 1 minute}
    measures: {events: count(*), total: sum(level)}
    allowed_lateness: 0 s
  per_hour:
    from: per_minute
    window: {tumbling: 1 hour}
    measures: {rows: count(*), total: sum(total)}
    allowed_lateness: 0 s
    expectations: per_hour
publish:
  hours: {from: gold.per_hour, when: update, jsonl: {path: "HOURS"}}
"""
SANE = "expectations: [{id: sane, expect: total < 100}]\n"


def test_a_gate_of_a_rollup_and_a_topic(spark: SparkSession, tmp_path: Path) -> None:
    """While the gate holds a version, the table that is read goes on, also through a replay."""
    hours = tmp_path / "hours.jsonl"
    with toys():
        project = SuiteProject(tmp_path, spark, GATED.replace("HOURS", str(hours)), "per_hour")
        project.write_rules(SANE)

        def deliver(*levels: int, minute: int) -> None:
            at = NOON + timedelta(minutes=minute)
            ids = range(len(levels))
            project.land(
                {"id": f"{minute}-{n}-{level}", "site": "a", "level": level, "at": at.isoformat()}
                for n, level in zip(ids, levels, strict=True)
            )

        def total() -> int:
            return sum(row["total"] for row in project.read("gold/per_hour"))

        engine = project.engine()
        for minute in (0, 1, 2):
            deliver(10, minute=minute)
            engine.run_all()
        assert total() == 20
        deliver(500, minute=3)
        deliver(10, 10, minute=4)
        engine.run_all()
        assert total() == 20, "a minute with 500 is final, and the hour is held"
        held = documents.hold_reason(engine.layout, "per_hour")
        assert held is not None
        deliver(7, minute=1)  # late
        engine.run_all()
        engine.operate("late_replay", table="per_minute", **EVERYTHING)
        engine.catch_up()
        minutes = {row["window_start"]: row for row in project.read("gold/per_minute")}
        assert minutes[NOON + timedelta(minutes=1)]["total"] == 17
        assert total() == 20

        given = held.release("anna@host", "a real outlier", engine.clock())
        documents.release(engine.layout, "per_hour", given)
        engine.catch_up()
        held = documents.hold_reason(engine.layout, "per_hour")
        assert held is not None
        assert held.is_of_operation, "the replay is held, too"
        assert total() == 530
        with pytest.raises(UsageError, match=r"gold.per_minute has carried out"):
            rejectable(engine.pipeline, engine.layout, held)
        given = held.release("anna@host", "still an outlier", engine.clock())
        documents.release(engine.layout, "per_hour", given)
        engine = project.engine()
        engine.catch_up()
        assert total() == 537
        assert revisions(engine, "per_minute") == {0, 1}
        assert balance(engine.layout, engine.pipeline).balanced
        engine.publish()
        *_, last = map(json.loads, hours.read_text().splitlines())
        assert last["value"]["total"] == 537
