"""Windows of calendars and with offsets: their bounds, and backfills of the windows that end in a
range. test_operator_contract.py proves their rows through batches, restarts and operations."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.declaration.names import TIMES
from headgate.driver.errors import DefinitionChangedError
from headgate.flow.gold.operators import calendar
from headgate.flow.gold.operators.calendar.assigning import assignment
from headgate.flow.gold.operators.calendar.boundaries import UNITS, Unit, boundaries
from headgate.flow.gold.operators.calendar.zones import CYCLE, rules_of
from headgate.history.savepoints.deployment import deployment_of
from tests.oracle.calendar import window_of
from tests.support.backfilled import backfill, unequal
from tests.support.engine import Engine
from tests.support.landing import Landing, split
from tests.support.rounds import in_full
from tests.support.tables import read

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
      schema: {{id: string, site: string, level: int, at: timestamp}}
silver: {{clean: {{from: raw}}}}
gold:
"""
TABLE = """
  {name}:
    from: clean
    window: {window}
    by: [site]
    measures: {{events: count(*), total: sum(level)}}
    allowed_lateness: 6 hours
"""
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BEGIN = datetime(2018, 10, 24, tzinfo=UTC)
"""On 28 October, the day has 25 hours in Berlin. On 4 November, midnight is skipped in São
Paulo."""
ZONES = {
    "berlin": ("day", "Europe/Berlin"),
    "sao_paulo": ("day", "America/Sao_Paulo"),
    "weeks": ("week", "Europe/Berlin"),
    "months": ("month", "Europe/Berlin"),
}
SHIFTED = {
    "sliding": (
        *("{hopping: {size: 6 hours, every: 2 hours, offset: 35 minutes}}", 6 * HOUR),
        *(2 * HOUR, timedelta(minutes=35)),
    ),
}


def windows_of(table: str, at: datetime) -> list[Window]:
    """By their definition."""
    if table in ZONES:
        return [window_of(at, *ZONES[table])]
    _, size, every, offset = SHIFTED[table]
    start = (at - EPOCH - offset) // every * every + EPOCH + offset
    found = []
    while start + size > at:
        found.append((start, start + size))
        start -= every
    return found


def declare(folder: Path, landing: Landing, *only: str) -> Pipeline:
    windows = {name: f"{{calendar: {{unit: {u}, zone: {z}}}}}" for name, (u, z) in ZONES.items()}
    windows |= {name: window for name, (window, *_) in SHIFTED.items()}
    file = folder / "readings.yml"
    folder.mkdir(parents=True, exist_ok=True)
    tables = (TABLE.format(name=name, window=windows[name]) for name in only or windows)
    file.write_text(DECLARATION.format(landing=landing.folder) + "".join(tables))
    return load(file)


def events(count: int, seed: int) -> list[bytes]:
    """Three weeks, mostly in order; some events are late by hours or days, and some are at a
    change of the clocks or at a midnight."""
    chance, made = random.Random(seed), []
    edges = [BEGIN + each * HOUR for each in (24 * 4 + 1, 24 * 11 + 3, 24 * 11 + 4, 24 * 11 + 5)]
    for number in range(count):
        at = BEGIN + 20 * DAY * number / count
        dice = chance.random()
        if dice < 0.2:
            at -= chance.random() * 30 * HOUR
        elif dice < 0.3:
            at -= chance.random() * 6 * DAY
        elif dice < 0.4:
            at = at.replace(hour=chance.choice((22, 23, 2, 3, 4)), minute=0, second=0)
        if dice > 0.9 and (edge := min(edges, key=lambda e: abs(e - at))) - at < HOUR * 20:
            at = edge + chance.choice((-1, 0, 1)) * timedelta(microseconds=1)
        event = {"id": f"r-{number}", "site": chance.choice("ab"), "level": chance.randrange(9)}
        made.append(json.dumps({**event, "at": at.isoformat()}).encode())
    return made


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Landing:
    landing = Landing(tmp_path_factory.mktemp("landing"))
    landing.write_all(split(events(400, seed=5), 1))
    return landing


def lengths(engine: Engine, table: str) -> set[float]:
    rows = read(engine.root, f"gold/{table}")
    return {(row["window_end"] - row["window_start"]) / HOUR for row in rows}


@in_full  # short runs: test_operator_contract.py
def test_windows_and_backfills(spark: SparkSession, tmp_path: Path, landing: Landing) -> None:
    engine = Engine(spark, declare(tmp_path, landing), tmp_path / "root").run_all()
    for table in engine.pipeline.gold:
        silver, gold = read(engine.root, "silver/clean"), read(engine.root, f"gold/{table}")
        known = {window for row in silver for window in windows_of(table, row["_event_time"])}
        assert {(row["window_start"], row["window_end"]) for row in gold} <= known, table
        assert {row["final"] for row in gold} == {True, False}
    assert lengths(engine, "berlin") == {24, 25}
    assert lengths(engine, "sao_paulo") == {23, 24}
    assert lengths(engine, "weeks") == {7 * 24, 7 * 24 + 1}
    assert lengths(engine, "months") == {31 * 24 + 1, 30 * 24}
    compare_with_backfills(engine)


def compare_with_backfills(engine: Engine) -> None:
    """A scheduled backfill compares the windows that end in its range."""
    everything = backfill(engine, begin=BEGIN - 60 * DAY)
    assert unequal(everything) == []
    final = {
        name: [row for row in read(engine.root, f"gold/{name}") if row["final"]]
        for name in engine.pipeline.gold
    }

    def check_range(begin: datetime, end: datetime, *ending: str) -> None:
        """``ending`` are tables with a window that began before the range and ends in it."""
        outcome = backfill(engine, begin=begin, end=end, by_end=True)
        assert unequal(outcome) == []
        counts = {table.table: table.equal for table in outcome.report.tables}
        for name, rows in final.items():
            ends_in = [row for row in rows if begin < row["window_end"] <= end]
            assert counts[name] == len(ends_in)
            assert name not in ending or any(row["window_start"] < begin for row in ends_in)

    # A day in UTC. The week ends at 23:00 on a Sunday, the month at 23:00 on the 31st.
    check_range(BEGIN + 4 * DAY, BEGIN + 5 * DAY, "berlin", "sao_paulo", "weeks", "sliding")
    check_range(BEGIN + 7 * DAY, BEGIN + 8 * DAY, "berlin", "sao_paulo", "months", "sliding")


def test_new_rules_of_a_zone_need_a_rebuild(
    spark: SparkSession, tmp_path: Path, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline = declare(tmp_path, landing, "berlin", "sao_paulo")
    engine = Engine(spark, pipeline, tmp_path / "root").run_all()
    moscow = rules_of("Europe/Moscow")
    monkeypatch.setattr(calendar, "rules_of", lambda z: moscow if "Berlin" in z else rules_of(z))
    changed = load(pipeline.file)
    plans = {each.table: each for each in deployment_of(engine.layout, changed).tables}
    assert {path: each.action for path, each in plans.items() if each.action != "resume"} == {
        "gold/berlin": "rebuild"
    }
    assert "new version of the rules of its time zone" in plans["gold/berlin"].reasons[0]
    with pytest.raises(DefinitionChangedError, match="gold/berlin was made from another"):
        Engine(spark, changed, engine.root)


@pytest.mark.parametrize(
    "zone", ["UTC", "Europe/Berlin", "Africa/Casablanca", "America/St_Johns", "America/Juneau"]
)
@pytest.mark.parametrize("unit", UNITS)
def test_spark_finds_the_same_boundaries(spark: SparkSession, unit: Unit, zone: str) -> None:
    """Of all times that records may have, and at the ends of what is listed."""
    chance, windows = random.Random(zone), boundaries(unit, zone)
    first, last = ((datetime(year, 1, 1, tzinfo=UTC) - EPOCH) for year in (10, 9989))
    second = timedelta(seconds=1)
    any_time = [chance.randrange(first // second, last // second) for _ in range(500)]
    ends = (windows.low, windows.high, *windows.starts[:3], *windows.starts[-3:])
    at_ends = [end + number * CYCLE for end in ends for number in range(-2, 3)]
    some = chance.sample(windows.starts, min(len(windows.starts), 500))
    times = [
        time * 1_000_000 + shift for time in (*any_time, *at_ends, *some) for shift in (-1, 0, 1)
    ]
    assert spark_windows(spark, unit, zone, times) == {
        time: tuple(each * 1_000_000 for each in windows.around(time // 1_000_000))
        for time in times
    }


def spark_windows(
    spark: SparkSession, unit: Unit, zone: str, times: Iterable[int]
) -> Mapping[int, tuple[int, int]]:
    known = pa.array(times, pa.timestamp("us", "UTC"))
    rows = spark.createDataFrame(pa.table({"_event_time": known}))
    assigned = assignment(boundaries(unit, zone), timedelta(0), TIMES["event"]).assign(rows)
    columns = ("_event_time", "window_start", "window_end")
    found = assigned.select(*map(F.unix_micros, columns)).collect()
    return {time: (start, end) for time, start, end in found}
