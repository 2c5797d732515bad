"""Windows by arrival: equal to their definition in plain Python, however batches end; through
errors, drains, replays of refused and of late rows, loads, backfills, rebuilds and restores."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.driver.task import RebuildRequest
from headgate.history.backfill.selection import EventTimeRange
from headgate.history.recompute.computing import recompute
from headgate.history.recompute.plan import WHOLE
from headgate.history.replay.corrections import as_refused, patched_records
from headgate.history.replay.refused import RefusedRecords, RefusedSelection
from headgate.insight.final_periods.finality import final_up_to
from headgate.insight.ledger import balance
from headgate.insight.ledger.by_id import by_id
from headgate.lake.tables.frames import micros
from tests.support.backfilled import backfill, unequal
from tests.support.declared import source_of
from tests.support.engine import Engine
from tests.support.failing import catch_up_despite
from tests.support.landing import Landing, lines
from tests.support.replay_project import ask
from tests.support.rounds import in_full
from tests.support.tables import Row, read

pytestmark = pytest.mark.spark

Window = tuple[datetime, datetime]
DECLARATION = """
pipeline: readings
sources:
  raw:
    files: {{path: "{landing}", format: json, order: name, settle: 0 s}}
    record:
      event_id: [id]
      event_time: {{column: at}}
      duplicates: {{within: 10 minutes}}
      schema: {{id: string, site: string, level: int, at: timestamp}}
silver: {{clean: {{from: raw}}}}
gold:
"""
TABLE = """
  {name}:
    from: clean
    window: {{{window}, time: arrival}}
    measures: {{events: count(*), total: sum(level), newest: last(level)}}
"""
TABLES = {
    "tumbling": "tumbling: 1 minute",
    "hopping": "hopping: {size: 3 minutes, every: 1 minute, offset: 20 s}",
    "days": "calendar: {unit: day, zone: Europe/Berlin}",
    "visits": "session: 70 s",
}
MORE = {"tumbling": "    by: [site]\n    where: level > 0\n", "visits": "    by: [site]\n"}
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND, MINUTE, DAY = timedelta(seconds=1), timedelta(minutes=1), timedelta(days=1)
FILES = 6
SEEN = [NOON + each * SECOND for each in (5, 50, 30, 75, 190, 300)]
"""When the files were written. A clock has gone back before the third."""
PLACES = ("gold.staged", "gold.committed", "gold.committed:2", "silver.committed")
EVERYTHING: dict[str, Any] = {"from": None, "to": None, "keys": {}}
PATCH = "json_merge_patch(value, '{\"level\": 50}')"


def declare(folder: Path, landing: Landing, *only: str) -> Pipeline:
    file = folder / f"{'-'.join(only)}readings.yml"
    tables = (
        TABLE.format(name=name, window=TABLES[name]) + MORE.get(name, "") for name in only or TABLES
    )
    file.write_text(DECLARATION.format(landing=landing.folder) + "".join(tables))
    return load(file)


def events(file: int, count: int = 12) -> list[bytes]:
    """Their event times are days apart, in any order. Some levels are no numbers."""
    chance, made = random.Random(file), []
    for number in range(count):
        at = NOON - chance.random() * 3 * DAY
        level = "high" if chance.random() < 0.1 else chance.randrange(9)
        event = {"id": f"r-{file}-{number}", "site": chance.choice("ab"), "level": level}
        made.append(json.dumps({**event, "at": at.isoformat()}).encode())
    return made


def land(landing: Landing, file: int, seen: datetime) -> None:
    landing.write(f"{file:05d}.json", lines(events(file)), seen)


class World:
    """When the records of each file, by its number, arrived; ``copies`` arrived by replays."""

    def __init__(self, seen: Iterable[datetime]) -> None:
        self.files = dict(enumerate(accumulate(seen, max), 1))
        self.copies: dict[str, datetime] = {}
        self.closed: dict[str, datetime] = {}
        self.late: set[str] = set()

    def arrived(self, row: Row) -> datetime:
        id_ = row["_event_id"]
        return self.copies.get(id_) or self.files[int(id_.split("-")[1])]

    @property
    def watermark(self) -> datetime:
        return max(at for number, at in self.files.items() if number < 100)  # 100: history


def windows_of(table: str, at: datetime) -> list[Window]:
    if table == "tumbling":
        start = at.replace(second=0, microsecond=0)
        return [(start, start + MINUTE)]
    if table == "hopping":
        last = (at - EPOCH - 20 * SECOND) // MINUTE * MINUTE + EPOCH + 20 * SECOND
        return [(last - n * MINUTE, last + (3 - n) * MINUTE) for n in range(3)]
    start = (at + timedelta(hours=1)).replace(hour=0, minute=0, second=0) - timedelta(hours=1)
    return [(start, start + DAY)]


def sessions_of(times: Iterable[datetime]) -> Mapping[datetime, Window]:
    """The session of each time of one key."""
    gap, found, begin = 70 * SECOND, dict[datetime, Window](), None
    in_order = sorted(set(times))
    of: list[datetime] = []
    for time, after in pairwise([*in_order, None]):
        assert time is not None
        begin, of = begin or time, [*of, time]
        if after is None or after - time > gap:
            found |= dict.fromkeys(of, (begin, time + gap))
            begin, of = None, []
    return found


def pairs(table: str, rows: list[Row], world: World) -> list[tuple[Window, Row]]:
    if table != "visits":
        return [(window, row) for row in rows for window in windows_of(table, world.arrived(row))]
    of = {
        site: sessions_of(world.arrived(row) for row in rows if row["site"] == site)
        for site in "ab"
    }
    return [(of[row["site"]][world.arrived(row)], row) for row in rows]


def expected(engine: Engine, table: str, world: World) -> dict[Any, Any]:
    """The rows of gold for the rows of silver."""
    rows = [row for row in read(engine.root, "silver/clean") if row["_event_id"] not in world.late]
    if table == "tumbling":
        rows = [row for row in rows if row["level"] > 0]
    of: dict[Any, list[Row]] = defaultdict(list)
    for window, row in pairs(table, rows, world):
        of[(*window, row["site"] if table in ("tumbling", "visits") else None)].append(row)
    found = {}
    for (begin, end, site), each in of.items():
        newest = max(each, key=lambda r: (r["_event_time"], r["_partition"], r["_offset"]))
        is_closed = table in world.closed and end <= world.closed[table]
        reached = world.watermark > end if table == "visits" else world.watermark >= end
        levels = sum(row["level"] for row in each), newest["level"]
        found[begin, end, site] = (len(each), *levels, reached or is_closed)
    return found


def actual(engine: Engine, table: str) -> dict[Any, Any]:
    gold = read(engine.root, f"gold/{table}")
    found = {
        (row["window_start"], row["window_end"], row.get("site")): tuple(
            row[name] for name in ("events", "total", "newest", "final")
        )
        for row in gold
    }
    assert len(found) == len(gold)
    return found


def check(engine: Engine, world: World) -> None:
    for row in read(engine.root, "silver/clean"):
        assert row["_arrived"] == world.arrived(row), row["_event_id"]
    for table in engine.pipeline.gold:
        assert actual(engine, table) == expected(engine, table, world), table
        waiting = {
            row["_event_id"]
            for row in read(engine.root, f"late/{table}")
            if row["replayed"] is None
        }
        where = {r["_event_id"] for r in read(engine.root, "silver/clean") if r["level"] > 0}
        assert waiting == (world.late & where if table == "tumbling" else world.late)
    assert balance(engine.layout, engine.pipeline).differences == ()
    assert by_id(engine.layout, engine.pipeline).findings == ()


def check_definition(engine: Engine, **ranges: EventTimeRange) -> None:
    """As ``ledger --recompute``."""
    wanted = ranges or dict.fromkeys(engine.pipeline.gold, WHOLE)
    done = recompute(engine.spark, engine.layout, engine.pipeline, wanted, engine.clock())
    assert done.holds
    assert all(table.equal for table in done.tables)


def replay_refused(engine: Engine) -> list[str]:
    """Correct all quarantined records."""
    records = RefusedRecords(engine.layout, engine.pipeline, source_of(engine.pipeline))
    refused = as_refused(records.rows(RefusedSelection()), lambda each: each.value or b"")
    corrected = patched_records(refused, PATCH)
    ask(engine, list(corrected))
    engine.take_in()
    return [str(each.of[0].event_id) for each in corrected]


@pytest.fixture
def landing(tmp_path: Path) -> Landing:
    landing = Landing(tmp_path / "landing")
    for number, seen in enumerate(SEEN, 1):
        land(landing, number, seen)
    return landing


@in_full  # short runs: test_operator_contract.py
def test_its_life(spark: SparkSession, tmp_path: Path, landing: Landing) -> None:
    whole = Engine(spark, declare(tmp_path, landing), tmp_path / "whole").run_all()
    world = World(SEEN)
    check(whole, world)
    pipeline = declare(tmp_path, landing, "tumbling", "visits")
    engine = Engine(spark, pipeline, tmp_path / "root")
    catch_up_despite(engine, PLACES)
    check(engine, World(SEEN[: len(PLACES)]))
    savepoint = engine.savepoint()
    engine.ingest(FILES)
    engine.catch_up()
    check(engine, world)
    for table in pipeline.gold:
        assert actual(engine, table) == actual(whole, table), "any batches give the same rows"
        assert any(final for *_, final in actual(engine, table).values())
    assert final_up_to(engine.layout, pipeline, "tumbling") == SEEN[-1]

    # Read again from the source, the records arrived when they did.
    engine.restore(savepoint, reread=True)
    engine = Engine(spark, pipeline, engine.root, now=engine.now)
    engine.run_all()
    check(engine, world)

    # Corrected copies arrive at the arrival watermark of their replay.
    world.copies = dict.fromkeys(replay_refused(engine), world.watermark)
    assert world.copies
    check(engine, world)

    # A drain closes windows before their end: what arrives in them later is late, and waits.
    engine.drain()
    for table in pipeline.gold:
        world.closed[table] = max(end for _, end, _ in actual(engine, table))
    world.files[7] = SEEN[-1] + SECOND
    land(landing, 7, world.files[7])
    engine.run_all()
    world.late = {r["_event_id"] for r in read(engine.root, "silver/clean")} & {
        f"r-7-{number}" for number in range(20)
    }
    assert world.late
    assert {row["reason"] for row in read(engine.root, "late/tumbling")} == {"closed"}
    check(engine, world)
    for table in pipeline.gold:
        engine.operate("late_replay", table=table, **EVERYTHING)
    engine.catch_up()
    world.late = set()
    check(engine, world)

    everything = backfill(engine, begin=NOON - 60 * DAY)
    assert unequal(everything) == []
    assert all(table.equal for table in everything.report.tables)
    check_definition(engine)
    first = EventTimeRange(micros(NOON - EPOCH), micros(NOON + MINUTE - EPOCH))
    check_definition(engine, tumbling=first)

    before = {table: actual(engine, table) for table in pipeline.gold}
    anew = RebuildRequest([f"gold/{name}" for name in pipeline.gold])
    rebuilt = Engine(spark, pipeline, engine.root, now=engine.now, anew=anew)
    rebuilt.catch_up()
    assert {table: actual(rebuilt, table) for table in pipeline.gold} == before
    check(rebuilt, world)


def test_history_is_in_the_windows_in_which_it_arrived(
    spark: SparkSession, tmp_path: Path, landing: Landing
) -> None:
    """Its rows are late for final windows, and the replays at the end of a load fold them."""
    pipeline = declare(tmp_path, landing, "tumbling")
    engine = Engine(spark, pipeline, tmp_path / "root").run_all()
    archive = Landing(tmp_path / "archive")
    world = World(SEEN)
    for number, seen in ((100, SEEN[0]), (101, NOON - 2 * DAY), (102, SEEN[-1])):
        land(archive, number, seen)
        world.files[number] = seen
    engine.begin_load(files=str(archive.folder))
    engine.load()
    engine.catch_up()
    late = list(read(engine.root, "late/tumbling"))
    assert {row["reason"] for row in late} == {"late"}
    assert all(row["_arrival_clock"] == SEEN[-1] for row in late)
    check(engine, world)
    check_definition(engine)
    # It knows which windows were final at the replays, by the arrival watermark there.
    assert unequal(backfill(engine, begin=NOON - 3 * DAY)) == []
