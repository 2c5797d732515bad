"""Gold is the same table for every reader, and needs no newer reader version than Delta's first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from tests.oracle import Closing, compare, derive
from tests.support.delta_readers import with_deltalake, with_duckdb, with_polars
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.landing import Landing, split
from tests.support.readings import APPROXIMATE, GOLD_KEYS, declare, rules
from tests.support.rounds import in_full
from tests.support.spark_reader import with_spark
from tests.support.tables import Row, differences

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def engine(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Engine:
    """Two batches. Some windows become final in between, and files are replaced."""
    folder = tmp_path_factory.mktemp("readers")
    landing = Landing(folder / "landing")
    landing.write_all(split(readings(200, seed=12), 2))
    engine = Engine(spark, declare(folder, landing.folder), folder / "root")
    engine.list_new()
    for end in (1, 2):
        engine.ingest(end)
        engine.catch_up()
    assert differences(engine.root, derive(landing.records(), rules())) == {}
    return engine


# In short runs, tests/spark/test_maintenance.py covers Spark's reader, after maintenance.
READERS = [with_duckdb, with_polars, pytest.param(with_spark, marks=in_full)]


@pytest.mark.parametrize("read", READERS)
def test_gold_is_the_same_for_every_reader(
    engine: Engine, tmp_path: Path, read: Callable[[Path, Path], list[Row]]
) -> None:
    tables = ["per_minute"] if read is with_spark else list(GOLD_KEYS)
    for name in tables:
        table = engine.root / "readings/gold" / name
        expected, found = with_deltalake(table, tmp_path), read(table, tmp_path)
        assert expected
        assert compare(expected, found, GOLD_KEYS[name]) == []
        assert {tuple(row) for row in (*expected, *found)} == {tuple(found[0])}


def test_the_oracle_has_the_same_gold_through_duckdb(engine: Engine, tmp_path: Path) -> None:
    landing = Landing(engine.pipeline.file.parent / "landing")
    landing.written = [
        (path.read_bytes(), engine.files_log.files[n].modified)
        for n, path in enumerate(sorted(landing.folder.iterdir()))
    ]
    expected = derive(landing.records(), rules()).gold
    for name, rows in expected.items():
        found = with_duckdb(engine.root / "readings/gold" / name, tmp_path)
        assert compare(rows, found, GOLD_KEYS[name], APPROXIMATE.get(name)) == []


def test_every_table_keeps_to_the_first_protocol(engine: Engine) -> None:
    logs = sorted(engine.root.rglob("_delta_log"))
    # Decisions, the files log, bronze, quarantine, 2 silver, 3 gold, 3 late.
    assert len(logs) == 12
    for log in logs:
        protocol = DeltaTable(str(log.parent)).protocol()
        assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)
        assert not protocol.reader_features
        assert not protocol.writer_features


def test_batches_go_on_after_an_optimize_by_another_tool(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The tool drops the state of open rows, because the table's schema does not have it."""
    landing = Landing(tmp_path / "landing")
    landing.write_all(split(readings(200, seed=12), 3))
    gold = ("sliding", "bands")
    engine = Engine(spark, declare(tmp_path, landing.folder, gold=gold), tmp_path / "root")
    engine.list_new()
    for end in (1, 2, 3):
        engine.ingest(end)
        engine.catch_up()
        for stage in engine.runtime.stages.gold.values():
            DeltaTable(stage.gold.storage.uri()).optimize.compact()
        if end == 2:
            engine.start()
    engine.drain()
    records = landing.records()
    closed = max(record.offset for record in records)
    expected = derive(records, rules(gold=gold), drains=[Closing({0: closed})])
    assert differences(engine.root, expected) == {}
