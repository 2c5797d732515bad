"""After a restore and new batches, the tables are the same as without the restore."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.history.savepoints.clone import clone_savepoint
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import savepoints
from headgate.history.savepoints.verify import verify_savepoint
from headgate.insight.ledger import balance
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.errors import CommitRefusedError, FencedError
from tests.oracle import Closing, Tables, derive
from tests.property.protocol.histories import history_faults
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.landing import Landing, split
from tests.support.prepared import Prepared
from tests.support.readings import declare, rules
from tests.support.rounds import some
from tests.support.tables import differences, read

pytestmark = pytest.mark.spark

GOLD = ("sliding",)
FIRST, FILES = 2, 6


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Landing:
    landing = Landing(tmp_path_factory.mktemp("landing"))
    landing.write_all(split(readings(400, seed=5), FILES))
    return landing


@pytest.fixture(scope="module")
def expected(landing: Landing) -> Tables:
    return derive(landing.records(), rules(gold=GOLD))


@pytest.fixture(scope="module")
def prepared(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, landing: Landing
) -> Prepared:
    """The first files are processed by every table; then a savepoint is taken."""
    folder = tmp_path_factory.mktemp("before")
    engine = Engine(spark, declare(folder, landing.folder, gold=GOLD), folder / "root")
    engine.list_new()
    engine.ingest(FIRST)
    engine.catch_up()
    engine.savepoint()
    return Prepared(engine)


def first_savepoint(engine: Engine) -> Savepoint:
    (savepoint,) = savepoints(engine.layout)
    assert isinstance(savepoint, Savepoint)
    return savepoint


@pytest.mark.parametrize(
    ("jobs", "way"),
    some(list(product(("fused", "per_layer"), ("reread", "bronze stays"))), one_in=3),
)
def test_a_restored_pipeline_ends_with_the_same_tables(
    tmp_path: Path, prepared: Prepared, expected: Tables, jobs: str, way: str
) -> None:
    engine = prepared.copy(tmp_path)
    savepoint = first_savepoint(engine)
    for end in (3, 5):
        engine.ingest(end)
    if jobs == "fused":
        engine.catch_up()
    else:
        engine.catch_up_per_layer()
    engine.restore(savepoint, reread=way == "reread")
    assert balance(engine.layout, engine.pipeline).balanced
    engine.start()
    if way == "reread":
        engine.ingest(4)
    engine.ingest(FILES)
    if jobs == "fused":
        engine.catch_up()
    else:
        engine.catch_up_per_layer()
    assert differences(engine.root, expected) == {}
    assert history_faults(engine.layout, engine.pipeline) == []
    assert balance(engine.layout, engine.pipeline).balanced


def test_a_savepoint_between_any_two_commits(
    tmp_path: Path, prepared: Prepared, expected: Tables
) -> None:
    """Bronze is ahead of silver, and silver of gold, as they are while drivers run."""
    engine = prepared.copy(tmp_path)
    engine.ingest(4)
    bronze_ahead = engine.savepoint()
    engine.runtime.stages.catch_up(("silver",), engine.clock(), None, (), 0)
    silver_ahead = engine.savepoint()
    engine.ingest(FILES)
    engine.catch_up()
    assert (bronze_ahead.sources["raw"].n, bronze_ahead.bronze["raw"].n) == (1, 2)
    assert {silver_ahead.tables[f"silver/{name}"].n for name in engine.pipeline.silver} == {2}
    assert {silver_ahead.tables[f"gold/{name}"].n for name in engine.pipeline.gold} == {1}
    for savepoint in (silver_ahead, bronze_ahead):
        engine.restore(savepoint)
        engine.start()
        engine.catch_up()
        assert differences(engine.root, expected) == {}


def test_windows_that_were_closed_by_hand_are_closed_again_where_they_were(
    tmp_path: Path, prepared: Prepared, landing: Landing
) -> None:
    engine = prepared.copy(tmp_path)
    savepoint = first_savepoint(engine)
    engine.ingest(3)
    engine.catch_up()
    engine.drain()
    engine.ingest(FILES)
    engine.catch_up()
    engine.drain()
    engine.restore(savepoint)
    engine.start()
    engine.catch_up()
    records = landing.records()
    seen = [max(r.offset for r in records if r.offset >> 36 < files) for files in (3, FILES)]
    expected = derive(records, rules(gold=GOLD), drains=[Closing({0: last}) for last in seen])
    assert {row["reason"] for rows in expected.late.values() for row in rows} == {"late", "closed"}
    assert differences(engine.root, expected) == {}
    assert history_faults(engine.layout, engine.pipeline) == []


def test_a_zombie_that_wakes_within_a_restore_gets_nothing_in(
    tmp_path: Path, prepared: Prepared, expected: Tables
) -> None:
    engine = prepared.copy(tmp_path)
    engine.ingest(4)
    zombie = engine.runtime
    engine.restore(first_savepoint(engine))
    with pytest.raises((FencedError, CommitRefusedError)):
        zombie.catch_up(engine.clock())
    engine.start()
    engine.ingest(FILES)
    engine.catch_up()
    assert differences(engine.root, expected) == {}


def test_a_copy_goes_on_by_itself(
    spark: SparkSession, tmp_path: Path, prepared: Prepared, expected: Tables
) -> None:
    engine = prepared.copy(tmp_path)
    engine.ingest(3)
    savepoint = engine.savepoint()
    engine.ingest(5)
    engine.catch_up()
    copied = tmp_path / "copy"
    clone_savepoint(engine.layout, savepoint, Layout.of(str(copied), engine.pipeline.name))
    before = read(engine.root, "bronze/raw")
    other = Engine(spark, engine.pipeline, copied)
    other.list_new()
    other.ingest(FILES)
    other.catch_up()
    assert differences(copied, expected) == {}
    assert read(engine.root, "bronze/raw") == before
    engine.ingest(FILES)
    engine.catch_up()
    assert differences(engine.root, expected) == {}
    assert not verify_savepoint(engine.layout, engine.pipeline.name, savepoint, read=True)
