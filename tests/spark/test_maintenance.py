"""Compaction and vacuum between batches, with Spark reading what Arrow has written."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from headgate.jobs.rebuild_request import RebuildRequest
from headgate.ledger import balance
from headgate.ledger.by_id import by_id
from headgate.maintenance import retention
from headgate.maintenance.compaction import CompactionLimits
from headgate.maintenance.report import Compacted, Vacuumed
from headgate.maintenance.work import compact, vacuum_tables
from headgate.tables.log_folder import log_folder
from tests.oracle import Closing, Tables, judge
from tests.support.engine import Engine
from tests.support.events import reading, readings
from tests.support.landing import Landing, split
from tests.support.readings import GOLD_KEYS, NOON, declare, rules
from tests.support.spark_reader import with_spark
from tests.support.tables import differences

pytestmark = pytest.mark.spark

FILES = 8


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Landing:
    landing = Landing(tmp_path_factory.mktemp("landing"))
    landing.write_all(split(readings(400, seed=7), FILES))
    return landing


@pytest.fixture(scope="module")
def expected(landing: Landing) -> Tables:
    return judge(landing.records(), rules())


@pytest.fixture(autouse=True)
def _checkpoints_are_made_of_short_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "WORTH_A_CHECKPOINT", 3)


def begin(spark: SparkSession, folder: Path, landing: Landing) -> Engine:
    engine = Engine(spark, declare(folder, landing.folder), folder / "root")
    engine.list_new()
    return engine


def compacted(engine: Engine) -> dict[str, Compacted]:
    tables, limits = engine.runtime.owned(), CompactionLimits(least=2)
    steps = compact(engine.layout, engine.pipeline, tables, nullcontext, engine.clock, limits)
    return {step.table: step for step in steps if step is not None}


def vacuumed(engine: Engine) -> dict[str, Vacuumed]:
    engine.now += timedelta(hours=1)  # ahead of the files' times
    done = vacuum_tables(
        engine.layout,
        engine.pipeline,
        engine.runtime.owned(),
        timedelta(),
        nullcontext,
        engine.clock,
    )
    return {each.table: each for each in done if each is not None}


def trimmed(engine: Engine) -> None:
    """Whatever can go goes: there is a checkpoint behind the one that logs begin with."""
    compacted(engine)
    vacuumed(engine)
    for table in engine.runtime.owned():
        table.fence(engine.epoch)
        DeltaTable(table.storage.uri()).create_checkpoint()
    vacuumed(engine)


def test_batches_go_on_over_merged_and_vacuumed_tables(
    spark: SparkSession, tmp_path: Path, landing: Landing, expected: Tables
) -> None:
    engine = begin(spark, tmp_path, landing)
    for end in (1, 2, 3):
        engine.absorb(end)
        engine.catch_up()
    merged = compacted(engine)
    assert all(merged[path].merged.files > 1 for path in ("bronze/raw", "silver/clean"))
    assert merged["gold/per_minute"].merged.files > 1
    for end in (4, 5):
        engine.absorb(end)
        engine.catch_up()
    gone = vacuumed(engine)
    assert all(gone[path].removed.files > 1 for path in ("bronze/raw", "gold/per_minute"))
    engine.start()
    engine.absorb(6)
    engine.catch_up()
    trimmed(engine)
    engine.absorb(FILES)
    engine.catch_up()
    assert differences(engine.root, expected) == {}
    assert balance(engine.layout, engine.pipeline).balanced
    assert by_id(engine.layout, engine.pipeline).holds
    compacted(engine)
    vacuumed(engine)
    assert differences(engine.root, expected) == {}
    # Delta's own reader sees the same.
    for name in GOLD_KEYS:
        table = engine.root / "readings/gold" / name
        assert len(with_spark(table, tmp_path)) == len(expected.gold[name])


@pytest.mark.parametrize("path", ["silver/clean", "gold/per_minute"])
def test_a_table_is_built_anew_from_merged_files_and_trimmed_logs(
    spark: SparkSession, tmp_path: Path, landing: Landing, path: str
) -> None:
    """And stops at an operation that lies among them."""
    engine = begin(spark, tmp_path, landing)
    for end in range(1, FILES + 1):
        engine.absorb(end)
        engine.catch_up()
        if end == 4:
            engine.drain()
    trimmed(engine)
    for table in ("bronze/raw", "silver/clean"):
        assert log_folder(engine.layout.storage.at(table)).oldest > 0
    engine = Engine(
        spark, engine.pipeline, engine.root, now=engine.now, anew=RebuildRequest((path,))
    )
    engine.catch_up()
    records = landing.records()
    # The oracle counts files from 0.
    closed = max(record.offset for record in records if record.offset >> 36 < 4)
    judged = judge(records, rules(), drains=[Closing({0: closed})])
    assert differences(engine.root, judged) == {}
    assert balance(engine.layout, engine.pipeline).balanced


def test_a_restored_pipeline_goes_on_over_merged_tables(
    spark: SparkSession, tmp_path: Path, landing: Landing, expected: Tables
) -> None:
    engine = begin(spark, tmp_path, landing)
    for end in (2, 3):
        engine.absorb(end)
        engine.catch_up()
    savepoint = engine.savepoint()
    for end in (4, 5, 6):
        engine.absorb(end)
        engine.catch_up()
    trimmed(engine)
    engine.restore(savepoint)
    engine.start()
    engine.catch_up()
    engine.absorb(FILES)
    engine.catch_up()
    assert differences(engine.root, expected) == {}


def test_quarantine_gets_no_row_twice_when_all_of_silver_is_built_anew(
    spark: SparkSession, tmp_path: Path
) -> None:
    """One commit stands for all batches behind a vacuum; quarantine has those with bad records,
    and its last is not the last of bronze."""
    landing = Landing(tmp_path / "landing")
    bad, good = split(readings(60, seed=5), 2)
    clean = b"\n".join(
        reading(f"clean-{n}", NOON + timedelta(minutes=20, seconds=n)) for n in range(5)
    )
    landing.write_all([bad, good, clean])
    expected = judge(landing.records(), rules())
    engine = begin(spark, tmp_path, landing)
    for end in (1, 2, 3):
        engine.absorb(end)
        engine.catch_up()
    trimmed(engine)
    assert engine.runtime.stages.silver["raw"].quarantine.refresh().n == 2
    anew = RebuildRequest(("silver/clean", "silver/strong"))
    engine = Engine(spark, engine.pipeline, engine.root, now=engine.now, anew=anew)
    engine.catch_up()
    assert differences(engine.root, expected) == {}
    assert balance(engine.layout, engine.pipeline).balanced
    assert by_id(engine.layout, engine.pipeline).holds
