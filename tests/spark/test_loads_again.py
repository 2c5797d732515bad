"""Loads of history if bronze goes back, is read again or is copied: the tables have each record of
history as often as bronze had it. Records have no ids, so a record that comes twice counts
twice."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.cli.main import answer
from headgate.declaration.load import load as read_declaration
from headgate.driver.task import RebuildRequest, Task
from headgate.history.loads import requests
from headgate.history.loads.requests import LoadRequest, load_state
from headgate.history.savepoints.clone import clone_savepoint
from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from headgate.lake.storage.layout import Layout
from tests.support.damage import harm
from tests.support.driver_here import run_here
from tests.support.engine import Engine
from tests.support.failing import dying
from tests.support.landing import Landing, lines
from tests.support.rounds import IN_FULL, in_full
from tests.support.tables import read

pytestmark = pytest.mark.spark

DECLARATION = """
pipeline: shop
sources:
  sales:
    files: {path: landing, format: json, settle: 0 seconds, max_files_per_batch: 1}
    record:
      event_time: {column: t}
      schema:
        t: timestamp
        k: string
        v: int
silver:
  all: {from: sales}
gold:
  hourly:
    from: all
    window: {tumbling: 1 hour}
    by: [k]
    measures:
      sales: count(*)
      total: sum(v)
    allowed_lateness: 10 minutes
"""
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
HISTORY = NOON - timedelta(days=1)

Sale = tuple[datetime, str, int]


def sales(begin: datetime, first: int, count: int = 20) -> list[Sale]:
    """One sale every 20 minutes; the last field makes each sale unique."""
    at = timedelta(minutes=20)
    return [(begin + n * at, "ab"[n % 2], first + n) for n in range(count)]


def write(folder: Path, name: str, found: Iterable[Sale]) -> None:
    rows = ({"t": t.isoformat(), "k": k, "v": v} for t, k, v in found)
    content = lines(json.dumps(row).encode() for row in rows)
    Landing(folder).write(name, content, NOON + timedelta(days=2))


LIVE = sales(NOON, 1)
OLD = [sales(HISTORY + timedelta(hours=n), 1_000 * (n + 1)) for n in range(3)]
"""The files of the archive; their hours overlap."""


@dataclass
class Shop:
    spark: SparkSession
    folder: Path
    engine: Engine = field(init=False)

    def __post_init__(self) -> None:
        write(self.folder / "landing", "1.json", LIVE)
        for n, found in enumerate(OLD, 1):
            write(self.archive, f"{n}.json", found)
        (self.folder / "shop.yml").write_text(DECLARATION)
        pipeline = read_declaration(self.folder / "shop.yml")
        self.engine = Engine(self.spark, pipeline, self.folder / "root").run_all()

    @property
    def archive(self) -> Path:
        return self.folder / "archive"

    def begin(self, steps: int | None = None, files: str = "") -> LoadRequest:
        request = self.engine.begin_load(files=str(self.archive / files))
        self.engine.load(steps)
        return request

    def wish(self, request: LoadRequest, wish: requests.Wish) -> None:
        self.engine.change_load(request, wish=wish)

    def change(self) -> None:
        """Add a column, so that bronze has to be read again from its source."""
        file = self.engine.pipeline.file
        text = file.read_text()
        more = f"v: int\n        w{text.count(': int')}: int"
        file.write_text(text.replace("v: int", more))

    def upgrade(self) -> Engine:
        """Start a new driver with the present declaration."""
        declared, anew = read_declaration(self.engine.pipeline.file), RebuildRequest(changed=True)
        root, now = self.engine.root, self.engine.now
        self.engine = Engine(self.spark, declared, root, now=now, anew=anew)
        return self.engine

    def run(self) -> None:
        """Run a driver with the present declaration until all is done."""
        declared, anew = read_declaration(self.engine.pipeline.file), RebuildRequest(changed=True)
        run_here(self.spark, Task(declared, str(self.engine.root), once=True, rebuild=anew))

    def rebuilt(self) -> None:
        self.change()
        self.upgrade().run_all()
        assert self.engine.bronze_loads() == (), "bronze is another one"
        self.engine.load()

    def states(self) -> list[str]:
        layout, name = self.engine.layout, self.engine.pipeline.name
        found = sorted(requests.all_loads(layout, name), key=lambda each: each.at)
        return [load_state(layout, name, each).state for each in found]

    def has(self, *files: list[Sale], late: Iterable[Sale] = ()) -> None:
        """Silver has every record once, and gold has folded every record that is not ``late``."""
        engine, wanted = self.engine, [sale for found in files for sale in found]
        assert balance(engine.layout, engine.pipeline).differences == ()
        assert by_id(engine.layout, engine.pipeline).findings == ()
        found = read(engine.root, "silver/all", "shop")
        assert sorted((r["t"], r["k"], r["v"]) for r in found) == sorted(wanted)
        sums: Counter[tuple[datetime, str]] = Counter()
        counts: Counter[tuple[datetime, str]] = Counter()
        for t, k, v in set(wanted) - set(late):
            window = t.replace(minute=0), k
            counts[window] += 1
            sums[window] += v
        gold = read(engine.root, "gold/hourly", "shop")
        keys = [(row["window_start"], row["k"]) for row in gold]
        assert len(set(keys)) == len(keys)
        rows = {key: (r["sales"], r["total"]) for key, r in zip(keys, gold, strict=True)}
        assert rows == {window: (n, sums[window]) for window, n in counts.items()}


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path) -> Shop:
    return Shop(spark, tmp_path)


def test_a_load_that_was_taken_back_does_not_come_again_with_a_new_bronze(shop: Shop) -> None:
    """The load is requested a second time, and history counts once. A run that reads bronze again
    does not end before the history is loaded."""
    files, found = "[12].json", OLD[:2]
    before = shop.engine.savepoint()
    shop.begin(files=files)
    shop.has(LIVE, *found)
    shop.engine.restore(before, reread=True)
    shop.engine.start().run_all()
    shop.has(LIVE)
    shop.begin(files=files)
    shop.has(LIVE, *found)
    shop.change()
    shop.run()
    shop.has(LIVE, *found)
    assert shop.states() == ["taken back", "done"]


@pytest.mark.parametrize("wish", ["cancelled", "paused", "stopped"][: 3 if IN_FULL else 1])
def test_what_a_load_had_brought_when_it_was_ended_or_held_comes_again(
    shop: Shop, wish: requests.Wish
) -> None:
    """Bronze gets no more of the load, and its late rows stay late."""
    request = shop.begin(steps=1)
    shop.wish(request, wish)
    shop.has(LIVE, OLD[0], late=OLD[0])
    shop.rebuilt()
    assert shop.states() == [wish]
    shop.has(LIVE, OLD[0], late=OLD[0])
    shop.rebuilt()
    assert shop.states() == [wish]
    shop.has(LIVE, OLD[0], late=OLD[0])
    if wish != "cancelled":
        shop.wish(request, "open")
        shop.engine.load()
        assert shop.states() == ["done"]
        shop.has(LIVE, *OLD)


@in_full
def test_a_load_that_was_taken_back_in_part_comes_again_in_part(shop: Shop) -> None:
    request = shop.begin(steps=1)
    before = shop.engine.savepoint()
    shop.engine.load()
    assert shop.states() == ["done"]
    shop.engine.restore(before, reread=True)
    shop.engine.start().run_all()
    shop.rebuilt()
    assert shop.states() == ["taken back"]
    shop.has(LIVE, OLD[0], late=OLD[0])
    shop.wish(request, "open")
    shop.engine.load()
    assert shop.states() == ["done"]
    shop.has(LIVE, *OLD)


def test_a_copy_has_the_loads_of_the_savepoint(shop: Shop, tmp_path: Path) -> None:
    """The original has finished the second load after the savepoint, under drivers with higher
    epochs."""
    shop.begin(files="1.json")
    shop.begin(steps=1, files="[23].json")
    savepoint = shop.engine.savepoint()
    for _ in range(3):
        shop.engine.start()
    shop.engine.load()
    there = Layout.of(str(tmp_path / "copy"), "shop")
    with dying("clone.load_done"):
        clone_savepoint(shop.engine.layout, savepoint, there)
    clone_savepoint(shop.engine.layout, savepoint, there)
    other = copy(shop)
    other.engine = Engine(shop.spark, shop.engine.pipeline, tmp_path / "copy")
    other.has(LIVE, OLD[0], OLD[1], late=OLD[1])
    other.engine.run_all()
    other.engine.load()
    other.has(LIVE, *OLD)
    assert other.states() == ["done", "done"]
    other.rebuilt()
    other.has(LIVE, *OLD)
    shop.has(LIVE, *OLD)


@in_full
def test_loads_come_again_wherever_a_rebuild_of_bronze_is_killed(shop: Shop) -> None:
    shop.begin(files="1.json")
    shop.wish(shop.begin(files="2.json", steps=1), "cancelled")
    shop.change()
    for place in ("load.reopened", "load.reopened", "rebuild.recorded", "reset.intended"):
        with dying(place):
            shop.upgrade().run_all()
    shop.upgrade().run_all()
    shop.engine.load()
    assert shop.states() == ["done", "cancelled"]
    shop.has(LIVE, OLD[0], OLD[1], late=OLD[1])


@in_full
def test_a_repair_that_reads_bronze_again_brings_what_it_had_of_loads(shop: Shop) -> None:
    before = shop.engine.savepoint()
    shop.begin()
    shop.engine.restore(before, reread=True)
    shop.engine.start().run_all()
    shop.begin()
    shop.has(LIVE, *OLD)
    engine, bronze = shop.engine, shop.engine.bronze
    entries = sorted((shop.engine.root / "shop" / bronze.name / "_delta_log").glob("*.json"))
    last = max(i for i, p in enumerate(entries) if '"kind":"data"' in p.read_text())
    for entry in entries[last:]:
        harm(entry, "truncated")
    assert answer(["repair", str(engine.pipeline.file), "--root", str(engine.root)]) == 0
    shop.engine = Engine(shop.spark, engine.pipeline, engine.root, now=engine.now).run_all()
    shop.engine.load()
    assert shop.states() == ["taken back", "done"]
    shop.has(LIVE, *OLD)
