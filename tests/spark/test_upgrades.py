"""After an upgrade, the tables are those of a pipeline that always had the new declaration."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.driver.errors import DefinitionChangedError
from headgate.driver.task import RebuildRequest
from headgate.history.savepoints.deployment import deployment_of
from headgate.history.savepoints.rebuilds import begun_rebuild
from headgate.history.savepoints.restore import restore_savepoint
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import savepoints
from headgate.insight.ledger import balance
from headgate.lake.tables import history
from headgate.lake.tables.history import batches
from headgate.lake.tables.live_files import live_files
from tests.oracle import Closing, derive
from tests.support.damage import flip_an_id
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.landing import Landing, split
from tests.support.prepared import Prepared, after
from tests.support.readings import GOLD, declare, rules
from tests.support.rounds import IN_FULL
from tests.support.tables import differences, read, states
from tests.unit.history.savepoints.test_declaration_changes import CHANGES

pytestmark = pytest.mark.spark

# One of each layer; `make nightly` tries every change.
IN_SHORT = ("another silver table under gold", "a field of the source added")
EVERY = [name for name, (_, _, expected, _) in CHANGES.items() if expected]
TRIED = EVERY if IN_FULL else IN_SHORT


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Landing:
    landing = Landing(tmp_path_factory.mktemp("landing"))
    landing.write_all(split(readings(150, seed=11), 4))
    return landing


@pytest.fixture(scope="module")
def prepared(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, landing: Landing
) -> Prepared:
    """Three of four files are processed by every table, one in each batch; then a savepoint is
    taken."""
    folder = tmp_path_factory.mktemp("before")
    engine = Engine(spark, declare(folder, landing.folder, gold=GOLD), folder / "root")
    prepared = after(3, engine)
    engine.savepoint()
    return prepared


def change(pipeline: Pipeline, old: str, new: str) -> Pipeline:
    pipeline.file.write_text(pipeline.text.replace(old, new, 1))
    return load(pipeline.file)


def upgraded(engine: Engine, pipeline: Pipeline) -> Engine:
    return Engine(engine.spark, pipeline, engine.root, anew=RebuildRequest(changed=True))


def go_on(engine: Engine) -> None:
    engine.list_new()
    if engine.position < engine.last_sequence:
        engine.ingest()
    engine.catch_up()


def rows(root: Path, pipeline: Pipeline) -> dict[str, list[str]]:
    """The rows of every table, without the times at which they were written. Sums of doubles may
    differ in their last bits."""

    def text(row: dict[str, object]) -> str:
        said = {k: v for k, v in row.items() if k != "updated_at"}
        return repr({k: f"{v:.9g}" if isinstance(v, float) else v for k, v in said.items()})

    return {path: sorted(map(text, read(root, path))) for path in pipeline.definitions}


def test_a_driver_that_refuses_to_start_creates_no_table(
    spark: SparkSession, tmp_path: Path, prepared: Prepared
) -> None:
    engine = prepared.copy(tmp_path)
    change(engine.pipeline, "where: level >= 5", "where: level >= 6")
    after = change(load(engine.pipeline.file), "silver:\n", "silver:\n  extra: {from: raw}\n")
    before = {*engine.root.rglob("_delta_log")}
    with pytest.raises(DefinitionChangedError, match="silver/strong"):
        Engine(spark, after, engine.root)
    assert {*engine.root.rglob("_delta_log")} == before


@pytest.mark.parametrize(
    ("old", "new", "table"),
    [
        ("where: level >= 5", "where: level >= 6", "silver/strong"),
        ("allowed_lateness: 1 minute", "allowed_lateness: 2 minutes", "gold/sliding"),
    ],
)
def test_a_changed_table_can_be_rebuilt_by_name(
    spark: SparkSession, tmp_path: Path, prepared: Prepared, old: str, new: str, table: str
) -> None:
    """With the tables downstream, which have changed with it."""
    engine = prepared.copy(tmp_path)
    after = change(engine.pipeline, old, new)
    go_on(Engine(spark, after, engine.root, anew=RebuildRequest((table,))))
    assert Engine(spark, after, engine.root).runtime.rebuild is None


def test_a_refused_driver_keeps_the_rebuild_of_an_upgrade(
    spark: SparkSession, tmp_path: Path, prepared: Prepared
) -> None:
    """One of its two tables is declared in another way again."""
    engine = prepared.copy(tmp_path)
    change(engine.pipeline, "allowed_lateness: 1 minute", "allowed_lateness: 2 minutes")
    both = change(
        load(engine.pipeline.file),
        "events: count(*)\n      heaviest",
        "n: count(*)\n      heaviest",
    )
    upgraded(engine, both)
    before = begun_rebuild(engine.decisions())
    assert before is not None
    assert {"gold/sliding", "gold/bands"} <= before.tables.keys()
    third = change(both, "n: count(*)\n", "m: count(*)\n")
    with pytest.raises(DefinitionChangedError, match="gold/bands"):
        Engine(spark, third, engine.root)
    assert begun_rebuild(engine.decisions()) == before


def test_a_plan_names_a_file_that_can_no_longer_be_read_again(
    tmp_path: Path, prepared: Prepared, landing: Landing
) -> None:
    engine = prepared.copy(tmp_path)
    after = change(engine.pipeline, "within: 10 minutes", "within: 20 minutes")
    assert deployment_of(engine.layout, after).action == "reread"
    first = min(landing.folder.iterdir())
    first.rename(tmp_path / first.name)
    try:
        found = deployment_of(engine.layout, after)
    finally:
        (tmp_path / first.name).rename(first)
    assert found.action == "refuse"
    (bronze,) = (each for each in found.tables if each.table == "bronze/raw")
    assert first.name in "; ".join(bronze.reasons)


@pytest.mark.parametrize("name", TRIED)
def test_tables_are_those_of_a_fresh_start(
    spark: SparkSession, tmp_path: Path, prepared: Prepared, name: str
) -> None:
    engine = prepared.copy(tmp_path)
    old, new, _, _ = CHANGES[name]
    after = change(engine.pipeline, old, new)
    with pytest.raises(DefinitionChangedError, match="was made from another declaration"):
        Engine(spark, after, engine.root)
    go_on(upgraded(engine, after))
    fresh = Engine(spark, after, tmp_path / "fresh").run_all()
    assert rows(engine.root, after) == rows(fresh.root, after)
    assert balance(engine.layout, after).balanced


def test_a_rolled_back_upgrade_is_as_if_it_never_was(
    spark: SparkSession, tmp_path: Path, prepared: Prepared, landing: Landing
) -> None:
    """Silver and gold had another schema in between."""
    engine = prepared.copy(tmp_path)
    before = engine.pipeline
    after = change(before, *CHANGES["a column that is dropped"][:2])
    go_on(upgraded(engine, after))
    (savepoint,) = savepoints(engine.layout)
    assert isinstance(savepoint, Savepoint)
    restore_savepoint(engine.layout, before, savepoint, 1000, engine.clock())
    before.file.write_text(before.text)
    engine = Engine(spark, before, engine.root)
    engine.catch_up()
    assert differences(engine.root, derive(landing.records(), rules(gold=GOLD))) == {}


def test_one_table_is_built_anew_beside_the_others(
    spark: SparkSession,
    tmp_path: Path,
    prepared: Prepared,
    landing: Landing,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The rebuild takes one step for each batch. Meanwhile all current tables continue, this one
    too. In the end, the rebuild replaces the table in one commit."""
    engine = prepared.copy(tmp_path)
    engine = Engine(spark, engine.pipeline, engine.root, anew=RebuildRequest(("gold/bands",)))
    runtime = engine.runtime
    current = {name: runtime.table(f"gold/{name}") for name in ("bands", "sliding")}
    engine.list_new()
    engine.ingest()
    monkeypatch.setattr(history, "ROWS_PER_STEP", 1)
    assert not runtime.catch_up(engine.clock(), one_step=True)
    assert [table.refresh().n for table in current.values()] == [4, 4]
    rebuild = begun_rebuild(engine.decisions())
    assert rebuild is not None
    assert [s.n for s in rebuild.steps(engine.layout, engine.pipeline.name)] == [1]
    before = current["bands"].handle.version()
    engine.catch_up()
    kinds = [state["kind"] for state in states(engine.root, "gold/bands")[before + 1 :]]
    assert kinds == ["reset"]
    assert differences(engine.root, derive(landing.records(), rules(gold=GOLD))) == {}


def test_a_table_that_is_built_anew_stops_at_operations(
    spark: SparkSession,
    tmp_path: Path,
    prepared: Prepared,
    landing: Landing,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Windows were closed after the third batch; a step of two batches would go beyond it."""
    engine = prepared.copy(tmp_path)
    engine.drain()
    engine.ingest(4)
    engine.catch_up()
    engine = Engine(spark, engine.pipeline, engine.root, anew=RebuildRequest(("silver/clean",)))
    sizes = [sum(f.rows for f in b.files) for b in batches(engine.bronze, 0, 4)]
    monkeypatch.setattr(history, "ROWS_PER_STEP", max(map(sum, pairwise(sizes))))
    while not engine.runtime.catch_up(engine.clock(), one_step=True):
        pass
    records = landing.records()
    last = max(r.offset for r in records if r.offset >> 36 < 3)
    expected = derive(records, rules(gold=GOLD), drains=[Closing({0: last})])
    assert differences(engine.root, expected) == {}


def without_bands(spark: SparkSession, folder: Path, landing: Landing) -> Engine:
    """One batch of two files; ``sliding`` is the only gold table."""
    pipeline = declare(folder, landing.folder, gold=("sliding",), silver=("clean",))
    engine = Engine(spark, pipeline, folder / "root")
    engine.list_new()
    engine.ingest(2)
    engine.catch_up()
    return engine


def test_a_table_that_was_not_there_begins_with_the_first_batch(
    spark: SparkSession, tmp_path: Path, landing: Landing
) -> None:
    engine = without_bands(spark, tmp_path, landing)
    engine = Engine(
        spark, declare(tmp_path, landing.folder, gold=("sliding", "bands")), engine.root
    )
    go_on(engine)
    expected = derive(landing.records(), rules(gold=("sliding", "bands")))
    assert differences(engine.root, expected) == {}


def test_a_new_table_waits_for_the_rebuild_of_the_one_above(
    spark: SparkSession, tmp_path: Path, landing: Landing
) -> None:
    """The current silver table has no such column yet."""
    engine = without_bands(spark, tmp_path, landing)
    after = declare(tmp_path, landing.folder, gold=("sliding", "bands"))
    after = change(after, "doubled: level * 2", "doubled: level * 2\n      tripled: level * 3")
    measure = "heaviest: max(weight)"
    after = change(after, measure, f"{measure}\n      thrice: sum(tripled)")
    go_on(upgraded(engine, after))
    fresh = Engine(spark, after, tmp_path / "fresh").run_all()
    assert rows(engine.root, after) == rows(fresh.root, after)


def test_a_damaged_page_of_the_current_table_does_not_stop_its_rebuild(
    spark: SparkSession, tmp_path: Path, prepared: Prepared, landing: Landing
) -> None:
    engine = prepared.copy(tmp_path)
    gold = engine.runtime.table("gold/bands")
    gold.refresh()
    opened = next(file for file in live_files(gold.handle) if not file.is_final)
    flip_an_id(Path(gold.storage.uri(opened.path)), "window_start")
    engine.ingest(4)
    with pytest.raises(Exception, match=r"\.parquet"):
        engine.catch_up()
    engine = Engine(spark, engine.pipeline, engine.root, anew=RebuildRequest(("gold/bands",)))
    stages = engine.runtime.stages
    engine.catch_up()
    assert f"{opened.path} cannot be read" in (stages.trouble or "")
    assert (engine.runtime.rebuild, engine.runtime.stages.trouble) == (None, None)
    assert differences(engine.root, derive(landing.records(), rules(gold=GOLD))) == {}
