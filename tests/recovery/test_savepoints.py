"""Savepoints of a pipeline under load, and restores that are killed half way."""

from __future__ import annotations

import signal
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.history.savepoints.clone import clone_savepoint
from headgate.history.savepoints.restore import restore_savepoint
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import create_savepoint, find_savepoint
from headgate.history.savepoints.verify import verify_savepoint
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.snapshot import tables_of
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table
from tests.recovery.test_kills import GOLD, Shop
from tests.support.drivers import PATIENCE, Running, headgate, start
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.landing import split
from tests.support.rounds import in_full
from tests.support.tables import differences, state

pytestmark = pytest.mark.recovery

SAVEPOINTS, FILES = 30, 20


def take_under_load(shop: Shop, driver: Running) -> list[Savepoint]:
    """Savepoints at arbitrary moments, each after some table has changed."""
    pipeline, layout = load(shop.declaration), Layout.of(str(shop.root), "readings")
    taken: list[Savepoint] = []
    tables: list[Table] = []
    last: list[State] = []
    deadline = time.monotonic() + 2 * PATIENCE
    while len(taken) < SAVEPOINTS:
        assert driver.process.poll() is None, driver.end().output
        assert time.monotonic() < deadline, f"only {len(taken)} were taken"
        time.sleep(0.02)
        if not layout.storage.exists("gold/bands/_delta_log"):
            continue
        tables = tables or list(tables_of(layout, pipeline.name))
        states = [table.refresh() for table in tables]
        if states != last:
            last = states
            taken.append(create_savepoint(layout, pipeline, datetime.now(UTC)))
    return taken


@in_full
@pytest.mark.spark
def test_savepoints_under_load_are_all_good(spark: SparkSession, tmp_path: Path) -> None:
    """Each one is restored, in place or as a copy, and ends with the oracle's tables."""
    shop = Shop(tmp_path, split(readings(25 * FILES, seed=21), FILES))
    shop.deliver(len(shop.files))
    driver = start(shop.declaration, shop.root, "--on")
    try:
        taken = take_under_load(shop, driver)
        driver.process.send_signal(signal.SIGTERM)
        assert driver.end().last_line == "done"
    finally:
        driver.kill()
    pipeline, expected = load(shop.declaration), shop.expected()
    layout = Layout.of(str(shop.root), pipeline.name)
    lags = {s.bronze["raw"].n - s.sources["raw"].n for s in taken}
    assert len(lags) > 1, "no savepoint was taken within a batch"
    for number, savepoint in enumerate(taken):
        assert not verify_savepoint(layout, pipeline.name, savepoint, read=True)
        root = shop.root
        if number % 3 == 2:
            root = tmp_path / f"copy-{number}"
            clone_savepoint(layout, savepoint, Layout.of(str(root), pipeline.name))
            engine = Engine(spark, pipeline, root)
        else:
            engine = Engine(spark, pipeline, root)
            engine.restore(savepoint)
            engine.start()
        engine.list_new()
        if engine.position < engine.last_sequence:
            engine.ingest()
        engine.catch_up()
        assert differences(root, expected) == {}, savepoint.id
    assert shop.history_faults() == []


@in_full  # short runs: tests/unit/history/savepoints/test_restore.py interrupts it at every write
@pytest.mark.spark
@pytest.mark.parametrize("options", [("--reread",), ()])
def test_a_restore_killed_half_way(
    spark: SparkSession, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """Wherever it was killed, the next restore finishes it, and so does the next driver."""
    shop = Shop(tmp_path, split(readings(90, seed=7), 3))
    pipeline = load(shop.declaration)
    shop.deliver(1)
    engine = Engine(spark, pipeline, shop.root).run_all()
    savepoint = engine.savepoint()
    shop.deliver(1)
    engine.run_all()
    place = (str(shop.declaration), savepoint.id, "--root", str(shop.root))
    command = ("savepoint restore", *place, *options)
    # Before and after the decision is committed, and between two tables.
    for failpoint in ("restore.fenced:3", "reset.intended", "reset.table_done:2"):
        assert headgate(*command, failpoint=failpoint).was_killed
    generation = state(shop.root, "quarantine/raw")["generation"]
    assert headgate(*command).code == 0
    assert state(shop.root, f"gold/{GOLD[0]}")["generation"] > generation > 0
    assert headgate(*command, failpoint="reset.intended").was_killed
    shop.deliver(1)
    Engine(spark, pipeline, shop.root).run_all()
    assert differences(shop.root, shop.expected()) == {}
    assert shop.history_faults() == []


@in_full
def test_a_restore_of_a_running_pipeline_is_refused(tmp_path: Path) -> None:
    shop = Shop(tmp_path, split(readings(60, seed=7), 2))
    shop.deliver(2)
    driver = start(shop.declaration, shop.root, "--on")
    try:
        layout = Layout.of(str(shop.root), "readings")
        while not layout.storage.exists(f"gold/{GOLD[-1]}/_delta_log"):
            assert driver.process.poll() is None, driver.end().output
            time.sleep(0.1)
        place = (str(shop.declaration), "--root", str(shop.root))
        assert headgate("savepoint create", *place).code == 0
        assert headgate("savepoint restore", place[0], "latest", *place[1:]).code == 6
        driver.process.send_signal(signal.SIGTERM)
        assert driver.end().last_line == "done"
    finally:
        driver.kill()
    restore_savepoint(
        layout, load(shop.declaration), find_savepoint(layout, "latest"), 100, datetime.now(UTC)
    )
    shop.finish()
    assert differences(shop.root, shop.expected()) == {}
    assert shop.history_faults() == []
