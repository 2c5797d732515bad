"""Compaction and vacuum between batches, with Spark reading what Arrow has written."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.driver.task import RebuildRequest
from headgate.history.maintenance import retention
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import savepoints
from headgate.insight.ledger import balance
from headgate.insight.ledger.by_id import by_id
from headgate.lake.tables.log import list_log
from tests.oracle import Closing, Tables, compare, derive
from tests.support.engine import Engine
from tests.support.events import reading, readings
from tests.support.landing import Landing, split
from tests.support.maintained import compacted, trimmed, vacuumed
from tests.support.prepared import Prepared
from tests.support.readings import APPROXIMATE, GOLD_KEYS, NOON, declare, rules
from tests.support.spark_reader import with_spark
from tests.support.tables import differences, state

pytestmark = pytest.mark.spark

GOLD = ("per_minute",)
FILES, CLOSED = 6, 4
"""The number of all files, and of those that were processed when windows were closed."""


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Landing:
    landing = Landing(tmp_path_factory.mktemp("landing"))
    landing.write_all(split(readings(300, seed=7), FILES))
    return landing


@pytest.fixture(scope="module")
def expected(landing: Landing) -> Tables:
    records = landing.records()
    # The oracle counts files from 0.
    closed = max(record.offset for record in records if record.offset >> 36 < CLOSED)
    return derive(records, rules(gold=GOLD), drains=[Closing({0: closed})])


@pytest.fixture(scope="module", autouse=True)
def _checkpoints_are_made_of_short_logs() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(retention, "WORTH_A_CHECKPOINT", 3)
        yield


@pytest.fixture(scope="module")
def maintained(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, landing: Landing
) -> Prepared:
    """All batches, with maintenance in between: a savepoint, whose files are merged later, and then
    an operation. At the end, all that may be deleted is deleted, and one more batch follows."""
    folder = tmp_path_factory.mktemp("maintained")
    engine = Engine(spark, declare(folder, landing.folder, gold=GOLD), folder / "root")
    engine.list_new()
    process(engine, 1, 2)
    merged = compacted(engine)
    assert all(merged[path].merged.files > 1 for path in ("bronze/raw", "silver/clean"))
    assert merged["gold/per_minute"].merged.files > 1
    gone = vacuumed(engine)
    assert all(gone[path].removed.files > 1 for path in ("bronze/raw", "gold/per_minute"))
    process(engine, 3)
    engine.savepoint()
    process(engine, CLOSED)
    engine.drain()
    compacted(engine)
    engine.start()
    process(engine, 5)
    trimmed(engine)
    for table in ("bronze/raw", "silver/clean"):
        assert list_log(engine.layout.storage.at(table)).oldest > 0
    process(engine, FILES)
    return Prepared(engine)


def process(engine: Engine, *ends: int) -> None:
    for end in ends:
        engine.ingest(end)
        engine.catch_up()


def test_batches_go_on_over_merged_and_vacuumed_tables(
    tmp_path: Path, maintained: Prepared, expected: Tables
) -> None:
    engine = maintained.copy(tmp_path)
    assert differences(engine.root, expected) == {}
    assert balance(engine.layout, engine.pipeline).balanced
    assert by_id(engine.layout, engine.pipeline).holds
    compacted(engine)
    vacuumed(engine)
    assert differences(engine.root, expected) == {}
    # Delta's own reader sees the same.
    name = "per_minute"
    found = with_spark(engine.root / "readings/gold" / name, tmp_path)
    assert compare(expected.gold[name], found, GOLD_KEYS[name], APPROXIMATE[name]) == []


@pytest.mark.parametrize("path", ["silver/clean", "gold/per_minute"])
def test_a_table_is_built_anew_from_merged_files_and_trimmed_logs(
    spark: SparkSession, tmp_path: Path, maintained: Prepared, expected: Tables, path: str
) -> None:
    """The rebuild stops at an operation that lies among the merged batches."""
    engine = maintained.copy(tmp_path)
    anew = RebuildRequest((path,))
    engine = Engine(spark, engine.pipeline, engine.root, now=engine.now, anew=anew)
    engine.catch_up()
    assert engine.runtime.rebuild is None
    assert differences(engine.root, expected) == {}
    assert balance(engine.layout, engine.pipeline).balanced


def test_a_restored_pipeline_goes_on_over_merged_tables(
    tmp_path: Path, maintained: Prepared, expected: Tables
) -> None:
    engine = maintained.copy(tmp_path)
    (savepoint,) = savepoints(engine.layout)
    assert isinstance(savepoint, Savepoint)
    engine.restore(savepoint)
    assert state(engine.root, "gold/per_minute")["n"] == 3
    engine.start()
    engine.catch_up()
    assert differences(engine.root, expected) == {}


def test_quarantine_gets_no_row_twice_when_all_of_silver_is_built_anew(
    spark: SparkSession, tmp_path: Path
) -> None:
    """After a vacuum, one commit stands for all batches before it. Quarantine has only batches with
    bad records, and its last batch is not bronze's last batch."""
    landing = Landing(tmp_path / "landing")
    bad, good = split(readings(60, seed=5), 2)
    clean = b"\n".join(
        reading(f"clean-{n}", NOON + timedelta(minutes=20, seconds=n)) for n in range(5)
    )
    landing.write_all([bad, good, clean])
    gold, silver = ("sliding",), ("clean", "strong")
    expected = derive(landing.records(), rules(gold=gold, silver=silver))
    pipeline = declare(tmp_path, landing.folder, gold=gold, silver=silver)
    engine = Engine(spark, pipeline, tmp_path / "root")
    engine.list_new()
    process(engine, 1, 2, 3)
    trimmed(engine)
    assert engine.runtime.stages.silver["raw"].quarantine.refresh().n == 2
    anew = RebuildRequest([f"silver/{name}" for name in silver])
    engine = Engine(spark, engine.pipeline, engine.root, now=engine.now, anew=anew)
    engine.catch_up()
    assert differences(engine.root, expected) == {}
    assert balance(engine.layout, engine.pipeline).balanced
    assert by_id(engine.layout, engine.pipeline).holds
