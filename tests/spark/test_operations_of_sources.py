"""Operations in a pipeline with two sources, whose batch ids differ, and sources that are added and
removed. The tables of each source are the oracle's. `tests/recovery/test_operations_of_sources.py`
kills the processes that carry operations out.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.history.savepoints.errors import SavepointError
from headgate.lake.tables.errors import FencedError
from tests.oracle import Closing, Replay
from tests.oracle.rules import Happening
from tests.support.backfilled import backfill, publish
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.failing import dying
from tests.support.landing import Landing, split
from tests.support.prepared import Prepared
from tests.support.rounds import in_full
from tests.support.two_readings import SOURCES, TwoReadings, declare_landings

pytestmark = pytest.mark.spark

RAW_FILES, OTHER_FILES = 6, 5
ALL: dict[str, Any] = {"from": None, "to": None, "keys": {}}


@pytest.fixture(scope="module")
def landings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Landing]:
    """Some ids and positions are in both sources."""
    folder = tmp_path_factory.mktemp("landings")
    made = {name: Landing(folder / name) for name in SOURCES}
    made["raw"].write_all(split(readings(150, seed=31), RAW_FILES))
    made["other"].write_all(split(readings(120, seed=34), OTHER_FILES))
    return made


@pytest.fixture(scope="module")
def begun(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, landings: dict[str, Landing]
) -> Prepared:
    """Three files of ``raw`` are three batches, two files of ``other`` are one. All tables have
    them."""
    folder = tmp_path_factory.mktemp("begun")
    pipeline = declare_landings(folder, landings)
    engine = Engine(spark, pipeline, folder / "root")
    list_all(engine)
    for end in (1, 2, 3):
        engine.ingest(end, "raw")
    engine.ingest(2, "other")
    engine.catch_up()
    return Prepared(engine)


@pytest.fixture
def two(begun: Prepared, landings: dict[str, Landing], tmp_path: Path) -> TwoReadings:
    return TwoReadings(begun.copy(tmp_path / "copy"), landings)


def list_all(engine: Engine) -> None:
    for source in engine.pipeline.sources:
        engine.list_new(source)


def finish(engine: Engine) -> None:
    """Ingest what is left of each source, and catch up."""
    for source in engine.pipeline.sources:
        if engine.position_of(source) < engine.files_of(source).log.last_sequence:
            engine.ingest(None, source)
    engine.catch_up()


def by_layer(engine: Engine, jobs: str) -> None:
    if jobs == "fused":
        engine.catch_up()
    else:
        engine.catch_up_per_layer()


@in_full
@pytest.mark.parametrize("jobs", ["fused", "per layer"])
def test_an_operation_takes_place_between_two_batches_of_each_source(
    two: TwoReadings, jobs: str
) -> None:
    engine = two.engine
    engine.ingest(4, "raw")
    engine.ingest(3, "other")
    engine.operate("drain")
    engine.start()
    (drain,) = engine.decisions().operations
    assert {name: at.n for name, at in drain.position.items()} == {"raw": 4, "other": 2}
    engine.ingest(5, "raw")
    by_layer(engine, jobs)
    engine.start()
    engine.operate("late_replay", table="raw_bands", **ALL)
    engine.operate("late_replay", table="other_bands", **ALL)
    engine.ingest(5, "other")
    by_layer(engine, jobs)
    engine.start()
    engine.ingest(6, "raw")
    by_layer(engine, jobs)
    two.check_ledger()
    meant: dict[str, list[Happening | None]] = {
        "raw": [Closing(two.upto("raw", 4)), Replay(two.upto("raw", 5), "bands"), None],
        "other": [Closing(two.upto("other", 3)), None, Replay(two.upto("other", 3), "bands")],
    }
    for source in SOURCES:
        expected = two.expected(source, meant[source])
        assert {row["reason"] for row in expected.late["sliding"]} == {"late", "closed"}
        replayed = {row["replayed"] is None for row in expected.late["bands"]}
        assert replayed == {True, False}, "some pairs come after the replay"
        two.check(source, expected)


def changed(pipeline: Pipeline, *changes: tuple[str, str]) -> Pipeline:
    text = pipeline.text
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    pipeline.file.write_text(text)
    return load(pipeline.file)


@in_full
def test_a_restore_takes_a_backfill_of_tables_of_both_sources_back(two: TwoReadings) -> None:
    engine = two.engine
    engine.drain()
    saved = engine.savepoint()
    before = engine.pipeline
    used = changed(before, ("heaviest: max(weight)", "heaviest: min(weight)"))
    before.file.write_text(before.text)
    outcome = backfill(engine, used=used, tables=("raw_bands", "other_bands"))
    assert all(table.differing for table in outcome.report.tables)
    publish(engine, outcome, saved.id)
    engine.take_in()
    engine.restore(saved)
    finish(engine.start())
    two.check_ledger()
    for source, files in (("raw", 3), ("other", 2)):
        two.check(source, two.expected(source, [Closing(two.upto(source, files)), None]))


@pytest.fixture
def alone(
    spark: SparkSession, tmp_path: Path, landings: dict[str, Landing]
) -> tuple[TwoReadings, Pipeline]:
    """Only ``raw`` is declared, and three of its files are in the tables; and the declaration of
    both sources."""
    pipeline = declare_landings(tmp_path / "both", landings)
    first = declare_landings(tmp_path / "alone", {"raw": landings["raw"]})
    engine = Engine(spark, first, tmp_path / "root")
    list_all(engine)
    for end in (2, 3):
        engine.ingest(end)
    engine.catch_up()
    return TwoReadings(engine, landings), pipeline


@in_full
@pytest.mark.parametrize("reread", [False, True])
def test_a_savepoint_of_before_a_source_was_added(
    alone: tuple[TwoReadings, Pipeline], *, reread: bool
) -> None:
    two, both = alone
    two.engine.drain()
    saved = two.engine.savepoint()
    two = replace(two, engine=two.again(both))
    engine = two.engine
    list_all(engine)
    engine.ingest(3, "other")
    engine.ingest(4, "raw")
    engine.operate("drain")
    engine.ingest(4, "other")
    engine.catch_up()
    for place, nth in (("reset.intended", 1), ("reset.table_done", 6)):
        with dying(place, nth):
            engine.restore(saved, reread=reread)
    finish(engine.start())
    two.check_ledger()
    first, second = (Closing(two.upto("raw", files)) for files in (3, 4))
    two.check("raw", two.expected("raw", [first, None if reread else second]))
    # Bronze of the added source stays.
    two.check("other", two.expected("other", [None, Closing(two.upto("other", 3))]))


def only_raw(two: TwoReadings, folder: Path) -> Pipeline:
    """The declaration of the pipeline without ``other``."""
    return declare_landings(folder, {"raw": two.landings["raw"]})


@in_full
@pytest.mark.parametrize("reread", [True, False])
def test_a_source_that_was_removed_and_declared_again(
    two: TwoReadings, tmp_path: Path, *, reread: bool
) -> None:
    """A restore while it is away takes its silver and gold back. Its bronze stays."""
    both = two.engine.pipeline
    saved = two.engine.savepoint()
    two.engine.ingest(3, "other")
    two.engine.drain()
    zombie = two.engine
    engine = two.again(only_raw(two, tmp_path / "alone"))
    list_all(engine)
    engine.ingest(4, "raw")
    engine.operate("late_replay", table="raw_bands", **ALL)
    with pytest.raises(FencedError):  # the driver before it still has the removed source
        zombie.ingest(4, "other")
    engine.catch_up()
    for place, nth in (("restore.fenced", 8), ("reset.table_done", 3)):
        with dying(place, nth):
            engine.restore(saved, reread=reread)
    finish(engine.start())
    two = replace(two, engine=two.again(both))
    finish(two.engine)
    two.check_ledger()
    raw: list[Happening | None] = [None, None]
    if not reread:
        raw = [Closing(two.upto("raw", 3)), Replay(two.upto("raw", 4), "bands")]
    two.check("raw", two.expected("raw", raw))
    two.check("other", two.expected("other", [Closing(two.upto("other", 3)), None]))


@in_full
def test_a_removed_source_that_was_read_again_since_a_savepoint_is_not_restored_to_it(
    two: TwoReadings, tmp_path: Path
) -> None:
    """Its silver and gold would have batches that its bronze no longer has."""
    engine, both = two.engine, two.engine.pipeline
    first = engine.savepoint()
    engine.ingest(3, "other")
    engine.catch_up()
    second = engine.savepoint()
    engine.restore(first, reread=True)
    engine.start().ingest(4, "other")
    engine.catch_up()
    engine = two.again(only_raw(two, tmp_path / "alone"))
    with pytest.raises(SavepointError, match="bronze/other"):
        engine.restore(second, reread=True)
    two = replace(two, engine=two.again(both))
    two.engine.restore(second, reread=True)
    finish(two.engine.start())
    two.check_ledger()
    for source in SOURCES:
        two.check(source, two.expected(source))
