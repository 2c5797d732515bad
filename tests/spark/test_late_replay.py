"""After a replay of late rows, gold is as if these rows had come in time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.driver.opening import open_tables
from headgate.driver.runtime import PipelineRuntime
from headgate.driver.schedules import ScheduledLateReplays
from headgate.driver.task import NO_REBUILD, RebuildRequest
from headgate.flow.operations.late_replay import replay_document
from headgate.flow.publish.changes import changes
from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from headgate.lake.control.requests import send_request, waiting_requests
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.frames import TableRows
from headgate.lake.tables.live_files import live_paths
from headgate.lake.tables.state import commit_time
from headgate.lake.tables.table import Table
from tests.oracle import derive
from tests.support.engine import Engine
from tests.support.events import reading, readings
from tests.support.failing import failing
from tests.support.landing import Landing, split
from tests.support.prepared import Prepared, after
from tests.support.readings import GOLD, GOLD_KEYS, NOON, declare, rules
from tests.support.tables import Row, read

pytestmark = pytest.mark.spark

STATUS = ("revision", "updated_at")


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Landing:
    landing = Landing(tmp_path_factory.mktemp("landing"))
    landing.write_all(split(readings(400, seed=10), 4))
    return landing


def patient(folder: Path, pipeline: Pipeline) -> Pipeline:
    """The same pipeline with an allowed lateness so long that no row is late."""
    text = (folder / "readings.yml").read_text()
    for lateness in ("10 seconds", "1 minute", "0 seconds"):
        text = text.replace(f"allowed_lateness: {lateness}", "allowed_lateness: 300 days")
    other = folder / "patient.yml"
    other.write_text(text)
    return load(other)


def by_key(table: str, rows: Iterable[Row]) -> Mapping[tuple[Any, ...], Row]:
    """Rows of gold by key, without the columns that say when and how often a row was written."""
    return {
        tuple(row[key] for key in GOLD_KEYS[table]): {
            name: value for name, value in row.items() if name not in STATUS
        }
        for row in rows
    }


def replay_everything(engine: Engine) -> None:
    for name in engine.pipeline.gold:
        engine.operate("late_replay", **{"table": name, "from": None, "to": None, "keys": {}})
    engine.catch_up()


def sound(engine: Engine) -> None:
    assert balance(engine.layout, engine.pipeline).differences == ()
    assert by_id(engine.layout, engine.pipeline).findings == ()


def run(spark: SparkSession, pipeline: Pipeline, root: Path) -> Engine:
    """Process the files in two batches. Which rows are late does not depend on the batches."""
    engine = Engine(spark, pipeline, root)
    engine.list_new()
    for end in (2, 4):
        engine.ingest(end)
        engine.catch_up()
    return engine


@pytest.fixture(scope="module")
def lived(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, landing: Landing
) -> Prepared:
    """All files are read."""
    folder = tmp_path_factory.mktemp("lived")
    return Prepared(run(spark, declare(folder, landing.folder, gold=("bands",)), folder / "root"))


@pytest.fixture(scope="module")
def in_time(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, landing: Landing
) -> Mapping[str, Mapping[tuple[Any, ...], Row]]:
    """The gold tables of a pipeline that has waited for all rows."""
    folder = tmp_path_factory.mktemp("patient")
    pipeline = patient(folder, declare(folder, landing.folder, gold=GOLD))
    engine = Engine(spark, pipeline, folder / "root").run_all()
    engine.drain()
    for name in pipeline.gold:
        assert not read(engine.root, f"late/{name}")
    return {name: by_key(name, read(engine.root, f"gold/{name}")) for name in pipeline.gold}


def test_gold_is_as_if_all_had_come_in_time(
    spark: SparkSession,
    tmp_path: Path,
    landing: Landing,
    in_time: Mapping[str, Mapping[tuple[Any, ...], Row]],
) -> None:
    engine = run(spark, declare(tmp_path, landing.folder, gold=GOLD), tmp_path / "root")
    engine.drain()
    before = {name: read(engine.root, f"gold/{name}") for name in GOLD}
    late = {name: len(read(engine.root, f"late/{name}")) for name in GOLD}
    assert all(late.values()), "the feed has late rows for each table"
    replay_everything(engine)
    sound(engine)
    for name, expected in in_time.items():
        rows = read(engine.root, f"gold/{name}")
        assert by_key(name, rows) == expected
        was = by_key(name, before[name])
        for row in rows:
            ((key, values),) = by_key(name, [row]).items()
            assert row["revision"] == (key in was and was[key] != values)
        assert [each["replayed"] for each in read(engine.root, f"late/{name}")].count(None) == 0
    accounts = {account.table: account for account in balance(engine.layout, engine.pipeline).gold}
    assert {name: (a.late, a.replayed) for name, a in accounts.items()} == {
        name: (0, count) for name, count in late.items()
    }
    # Nothing is left to be replayed: no row changes again.
    again = {name: read(engine.root, f"gold/{name}") for name in GOLD}
    replay_everything(engine)
    assert {name: read(engine.root, f"gold/{name}") for name in GOLD} == again


def test_only_what_is_chosen_is_folded(
    spark: SparkSession, tmp_path: Path, landing: Landing
) -> None:
    engine = run(spark, declare(tmp_path, landing.folder, gold=("sliding",)), tmp_path / "root")
    late, before = read(engine.root, "late/sliding"), read(engine.root, "gold/sliding")
    groups: dict[datetime, list[datetime]] = {}
    for row in late:
        if row["ok"]:
            groups.setdefault(row["window_start"], []).append(row["_event_time"])
    split = sorted(max(groups.values(), key=lambda times: len(set(times))))
    middle = split[-1]
    assert split[0] < middle, "a row of gold gets some of its late pairs, and others wait"
    chosen = {row["_event_id"] for row in late if row["_event_time"] < middle and row["ok"]}
    document = replay_document("sliding", None, commit_time(middle), {"ok": "true"})
    engine.operate("late_replay", **document)
    engine.catch_up()
    sound(engine)
    after = read(engine.root, "late/sliding")
    assert {row["_event_id"] for row in after if row["replayed"] is not None} == chosen
    gold = read(engine.root, "gold/sliding")
    assert {row["ok"] for row in gold if row not in before} == {True}
    replay_everything(engine)
    sound(engine)


def test_a_request_is_carried_out_once_however_the_driver_fails(
    lived: Prepared, tmp_path: Path
) -> None:
    engine = lived.copy(tmp_path)
    document: dict[str, Any] = {"table": "bands", "from": None, "to": None, "keys": {}}
    send_request(engine.layout, "late_replay", document, NOON)
    for place in ("operation.taken_in", "operation.staged", "operation.table_done"):
        with failing(place):
            engine.start().take_in()
    engine.start().take_in()
    assert waiting_requests(engine.layout) == ()
    sound(engine)
    late = read(engine.root, "late/bands")
    assert {row["replayed"] for row in late} == {1}
    assert {row["revision"] for row in read(engine.root, "gold/bands")} == {0, 1}


def test_a_publication_sends_the_rows_that_have_changed_and_no_others(
    spark: SparkSession, lived: Prepared, tmp_path: Path
) -> None:
    engine = lived.copy(tmp_path)
    gold = Table(engine.layout.storage, "gold/bands", pipeline=engine.pipeline.name)
    late = Table(engine.layout.storage, "late/bands", pipeline=engine.pipeline.name)
    before = [newest(table) for table in (gold, late)]
    was = read(engine.root, "gold/bands")
    replay_everything(engine)
    (commit,) = changes(gold, before[0], newest(gold))
    rows = TableRows(spark, gold).of(commit.files)
    assert {row["revision"] for row in rows.collect()} <= {0, 1}
    after = read(engine.root, "gold/bands")
    assert rows.count() == sum(row not in was for row in after) > 0
    assert not [*changes(late, before[1], newest(late))]


def newest(table: Table) -> int:
    table.refresh()
    return table.version


def test_a_schedule_replays_what_is_young_enough(
    spark: SparkSession, lived: Prepared, tmp_path: Path, landing: Landing
) -> None:
    engine = lived.copy(tmp_path)
    pipeline = engine.pipeline
    expected = derive(landing.records(), rules(gold=("bands",)))
    times = sorted(row["_event_time"] for row in expected.late["bands"])
    begin = times[len(times) // 2]
    assert expected.clock is not None
    assert times[0] < begin
    within = (expected.clock - begin) // timedelta(milliseconds=1) + 1
    late = f"late: {{replay_every: 1 day, within: {within} ms}}"
    text = pipeline.text.replace("lateness: 0 seconds", f"lateness: 0 seconds\n    {late}")
    pipeline.file.write_text(text)
    scheduled = load(pipeline.file)
    assert scheduled.definitions == pipeline.definitions, "a schedule changes no table"
    engine = Engine(spark, scheduled, engine.root, now=engine.now)
    replays = ScheduledLateReplays(engine.layout, scheduled)
    for hours, count in ((0, 1), (1, 0), (23, 0), (25, 0)):
        replays.run_due(NOON + timedelta(hours=hours))
        assert len(waiting_requests(engine.layout)) == count, (
            "nothing waits any more that is young enough"
        )
        engine.take_in()
    sound(engine)
    for row in read(engine.root, "late/bands"):
        assert row["replayed"] == (1 if row["_event_time"] >= begin else None)


@pytest.fixture(scope="module")
def halfway(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, landing: Landing
) -> Prepared:
    """Two files are read, and two are not."""
    folder = tmp_path_factory.mktemp("halfway")
    engine = Engine(spark, declare(folder, landing.folder, gold=("bands",)), folder / "root")
    return after(2, engine)


def compact_silver(engine: Engine) -> None:
    """As another tool does."""
    silver = DeltaTable(str(engine.root / "readings/silver/clean"))
    assert silver.optimize.compact()["numFilesRemoved"] > 1


def remove_old_files(engine: Engine) -> None:
    silver = Table(engine.layout.storage, "silver/clean", pipeline="readings")
    silver.refresh()
    live = live_paths(silver.handle)
    for stat in [*silver.storage.list("data", recursive=True)]:
        if stat.path not in live:
            silver.storage.remove(stat.path)


def silver_goes_ahead(engine: Engine) -> None:
    """The job of silver processes the other files. That of gold has not begun."""
    engine.list_new()
    for end in (3, 4):
        engine.ingest(end)
        engine.epoch += 1
        runtime = PipelineRuntime(engine.spark, engine.pipeline, engine.layout, ("silver",))
        open_tables(runtime, engine.layout, engine.epoch, engine.clock(), NO_REBUILD)
        runtime.catch_up(engine.clock())


def gold_of(engine: Engine) -> Mapping[tuple[Any, ...], Row]:
    return by_key("bands", read(engine.root, "gold/bands"))


REPLAY: Mapping[str, Any] = {"table": "bands", "from": None, "to": None, "keys": {}}


@pytest.mark.parametrize("is_ahead", [False, True], ids=["together", "silver is ahead"])
def test_a_replay_after_another_tool_has_compacted_silver(
    halfway: Prepared, tmp_path: Path, *, is_ahead: bool
) -> None:
    engines = [halfway.copy(tmp_path / name) for name in ("plain", "compacted")]
    for engine in engines:
        engine.operate("late_replay", **REPLAY)
        if is_ahead:
            silver_goes_ahead(engine)
        if engine is engines[1]:
            compact_silver(engine)
        engine.start().catch_up()
        engine.list_new()
        engine.ingest()
        engine.catch_up()
        engine.operate("late_replay", **REPLAY)
        engine.catch_up()
        sound(engine)
    plain, compacted = engines
    late = [row["replayed"] for row in read(compacted.root, "late/bands")]
    assert {1, 2} <= {*late}, "both replays have folded something"
    assert gold_of(compacted) == gold_of(plain)


def test_a_replay_for_which_silver_is_no_longer_known_changes_nothing_and_names_the_way_on(
    halfway: Prepared, tmp_path: Path
) -> None:
    """Another tool has compacted silver, after it had gone ahead, and has removed the old files."""
    engine = halfway.copy(tmp_path)
    engine.operate("late_replay", **REPLAY)
    silver_goes_ahead(engine)
    compact_silver(engine)
    remove_old_files(engine)
    late = Table(engine.layout.storage, "late/bands", pipeline="readings")
    for _ in range(2):  # at each start
        engine.start()
        before = newest(late)
        with pytest.raises(LogGapError, match="silver/clean: another tool has rewritten") as error:
            engine.catch_up()
        assert "--full-refresh silver.clean" in error.value.remedy
        assert newest(late) == before, "nothing is marked"
    anew = RebuildRequest(("silver/clean",))
    engine = Engine(engine.spark, engine.pipeline, engine.root, now=engine.now, anew=anew)
    engine.catch_up()
    sound(engine)
    assert {row["replayed"] for row in read(engine.root, "late/bands")} == {1, None}


def test_a_replay_long_after_the_last_late_row_needs_no_old_file_of_silver(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The batch of the late table is that of its last row, and silver was compacted since."""
    landing = Landing(tmp_path / "landing")
    landing.write_all(split(readings(150, seed=7), 1))
    engine = Engine(spark, declare(tmp_path, landing.folder, gold=("bands",)), tmp_path / "root")
    engine.run_all()
    newest_time = max(row["_event_time"] for row in read(engine.root, "silver/clean"))
    landing.write("00009.json", reading("newest", newest_time, value=1, level=7) + b"\n")
    engine.run_all()
    late, gold = (
        Table(engine.layout.storage, f"{layer}/bands", pipeline="readings")
        for layer in ("late", "gold")
    )
    assert late.refresh().n < gold.refresh().n
    compact_silver(engine)
    remove_old_files(engine)
    engine.operate("late_replay", **REPLAY)
    engine.start().catch_up()
    sound(engine)
    assert 1 in {row["replayed"] for row in read(engine.root, "late/bands")}
