"""A backfill computes the same rows from bronze as the stream has produced."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from headgate.cli.backfill.verb import windows_of
from headgate.declaration.model import Pipeline
from headgate.flow.gold import recomputing
from headgate.flow.gold.fold_stage import FoldStage
from headgate.flow.gold.late_replay import LatePairSelection
from headgate.flow.gold.operators.windows import Windows, assigning
from headgate.history.backfill.plan import BackfillPlan, plan_backfill
from headgate.history.backfill.running import BackfillScope, preview_backfill
from headgate.history.replay.refused import RefusedSelection as Refused
from headgate.history.savepoints.holds import FOLDER
from headgate.lake.tables.errors import DamagedFileError
from headgate.lake.tables.frames import TableRows, micros
from headgate.lake.tables.live_files import live_files
from tests.support.backfilled import backfill, unequal
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.failing import dying, passing
from tests.support.landing import Landing, split
from tests.support.maintained import compacted, trimmed
from tests.support.prepared import Prepared
from tests.support.readings import NOON, declare
from tests.support.replay_project import CORRECTION, ReplayProject, event
from tests.support.rounds import in_full
from tests.support.ruled import declare_ruled
from tests.support.tables import read

pytestmark = pytest.mark.spark

SENT = ((5, (-27, -5)), (50, (-18, -9, 0)))
"""The minutes at which an event is sent with a level that breaks the rule, and with a good one."""
EVERYTHING: dict[str, Any] = {"from": None, "to": None, "keys": {}}


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Landing:
    landing = Landing(tmp_path_factory.mktemp("landing"))
    landing.write_all(split(readings(300, seed=10), 4))
    return landing


def eventful(spark: SparkSession, pipeline: Pipeline, root: Path) -> Engine:
    """A stream with drains and replays of late rows between its batches."""
    engine = Engine(spark, pipeline, root)
    engine.list_new()
    for end in range(1, engine.last_sequence + 1):
        engine.ingest(end)
        if end in (1, 3):
            engine.operate("drain")
        if end in (2, 3):
            first, *_ = pipeline.gold
            engine.operate("late_replay", table=first, **EVERYTHING)
        engine.catch_up()
    return engine


@pytest.fixture(scope="module")
def lived(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, landing: Landing
) -> Prepared:
    # The root looks like the folder of a staging attempt, whose path contains the batch id.
    folder = tmp_path_factory.mktemp("lived") / "data/2026-05-04"
    folder.mkdir(parents=True)
    pipeline = declare(folder, landing.folder, gold=("sliding", "bands"))
    return Prepared(eventful(spark, pipeline, folder / "root"))


def declare_rich(folder: Path, landing: Path) -> Pipeline:
    return declare(folder, landing, gold=("per_minute",))


def declare_with_rules(folder: Path, landing: Path) -> Pipeline:
    return declare_ruled(folder, landing, ("bands",))


@in_full  # short runs: the test of a loaded history has rules, and one code folds all measures
@pytest.mark.parametrize("declared", [declare_rich, declare_with_rules])
def test_all_kinds_of_measures_and_rejected_rows_are_equal(
    spark: SparkSession,
    tmp_path: Path,
    landing: Landing,
    declared: Callable[[Path, Path], Pipeline],
) -> None:
    engine = eventful(spark, declared(tmp_path, landing.folder), tmp_path / "root")
    assert unequal(backfill(engine)) == []


def test_a_range_is_equal_with_what_was_late_or_drained_or_replayed(lived: Prepared) -> None:
    engine = lived.engine
    whole = backfill(engine)
    assert unequal(whole) == []
    for table in whole.report.tables:
        final = [row for row in read(engine.root, f"gold/{table.table}") if row["final"]]
        assert (table.equal, table.live) == (len(final), table.backfilled)
        late = read(engine.root, f"late/{table.table}")
        assert {row["reason"] for row in late} == {"late", "closed"}
    assert any(row["replayed"] for row in read(engine.root, "late/sliding"))
    part = backfill(engine, begin=NOON + timedelta(minutes=3), end=NOON + timedelta(minutes=10))
    assert unequal(part) == []
    for some, every in zip(part.report.tables, whole.report.tables, strict=True):
        assert 0 < some.equal < every.equal
    assert not [*engine.layout.storage.at(FOLDER).list("scratch", recursive=True)]


def test_each_window_is_compared_in_the_interval_in_which_it_ends(lived: Prepared) -> None:
    """Also if it is longer than the interval, and no window of another table is compared twice."""
    engine = lived.engine
    tables = [*engine.pipeline.gold]
    found = {name: read(engine.root, f"gold/{name}") for name in tables}
    for minute in (7, 9):
        begin, end = (NOON + timedelta(minutes=at) for at in (minute, minute + 2))
        outcome = backfill(engine, begin=begin, end=end, by_end=True)
        assert unequal(outcome) == []
        assert outcome.report.by_end
        final = {
            name: [row for row in rows if row["final"] and begin < row["window_end"] <= end]
            for name, rows in found.items()
        }
        assert {t.table: t.equal for t in outcome.report.tables} == {
            name: len(rows) for name, rows in final.items()
        }
        asked = BackfillScope(engine.pipeline, engine.pipeline, tables, begin, end, by_end=True)
        windows = {
            name: (len({row["window_start"] for row in rows}), len(rows))
            for name, rows in final.items()
        }
        assert windows_of(engine.layout, asked) == windows
        assert windows["sliding"][0] == 2
        # Windows of five minutes end at 11:40.
        assert windows["bands"][0] == (minute == 9)


def test_history_that_was_loaded_beside_the_stream_is_in_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Its records are late for final windows, and were folded; some of its ids were known."""
    values = readings(300, seed=21)
    landing, archive = Landing(tmp_path / "landing"), Landing(tmp_path / "archive")
    landing.write_all(split(values[100:200], 2))
    archive.write_all(split(values[:120], 2))
    pipeline = declare_with_rules(tmp_path, landing.folder)
    engine = Engine(spark, pipeline, tmp_path / "root").run_all()
    engine.begin_load(files=str(archive.folder))
    engine.load()
    landing.write_all(split(values[200:], 1), first=3)
    engine.run_all()
    assert any(row["replayed"] for row in read(engine.root, "late/bands"))
    assert unequal(backfill(engine)) == []


def test_which_copies_are_taken_may_depend_on_copies_far_from_the_range(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The good copies are at most ten minutes from each other, and each takes the place of a
    rejected row only if the one before it did not."""
    project = ReplayProject(tmp_path, spark)
    bad, good = ([event("x", level, 60 * at) for at in times] for level, times in SENT)
    engine = project.engine()
    for events in (bad[:1], [*bad[1:], *good, event("later", 50, 30 * 60)]):
        project.land(events)
        engine.list_new()
        engine.ingest()
    engine.catch_up()
    taken = [row["_event_time"] for row in project.read("silver/clean") if row["_event_id"] == "x"]
    assert sorted(taken) == [NOON - timedelta(minutes=18), NOON]
    found = backfill(engine, begin=NOON)
    assert [(table.result, table.equal) for table in found.report.tables] == [("equal", 1)]


def test_after_replays_only_the_files_of_the_range_and_of_its_corrections_are_read(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Each hour has a file. One correction keeps the time of its record, another one changes it
    from the second hour to the fifth."""
    project = ReplayProject(tmp_path, spark)
    engine, first = project.engine(), NOON - timedelta(hours=6)
    for hour in range(6):
        names = ("good", *(("low",) if hour in (0, 2) else ()))
        levels = {"good": 50, "low": 5}
        project.land([event(f"{name}{hour}", levels[name], 3600 * (hour - 6)) for name in names])
        engine.list_new()
        engine.ingest()
    engine.catch_up()
    later = (first + timedelta(hours=5, minutes=30)).isoformat()
    moved = f'json_merge_patch(value, \'{{"level": 50, "at": "{later}"}}\')'
    for id_, patch in (("low0", CORRECTION), ("low2", moved)):
        assert project.ask(engine, patch, Refused(event_id=id_)) == 1
        engine.take_in()
    engine.operate("drain")
    engine.catch_up()

    def batches(begin: int, end: int) -> set[int]:
        """The batches of the files that are read for some hours."""
        times = [first + timedelta(hours=hour) for hour in (begin, end)]
        asked = BackfillScope(engine.pipeline, engine.pipeline, ["per_minute"], times[0], times[1])
        _, plan = preview_backfill(engine.layout, asked)
        return {file.n for file in plan.read}

    assert [batches(n, n + 1) for n in range(3)] == [{1, 7}, {2}, {3, 8}]
    assert (batches(3, 5), batches(5, 6)) == ({4, 5}, {3, 6, 8})
    for hour in (0, 2, 5):
        begin = first + timedelta(hours=hour)
        found = backfill(engine, begin=begin, end=begin + timedelta(hours=1))
        assert unequal(found) == []
    project.check(engine)
    assert project.ids("silver/clean")[-2:] == ["low0", "low2"]


@pytest.mark.parametrize("left_out", ["replays", pytest.param("drains", marks=in_full)])
def test_what_is_left_out_is_found(
    lived: Prepared, monkeypatch: pytest.MonkeyPatch, left_out: str
) -> None:
    """No stage decides drains and replays: a backfill without them differs from the stream."""
    compute: Any = recomputing.computed_rows

    def without(*arguments: Any) -> Any:
        *before, meant, waiting, now = arguments
        assert getattr(meant, left_out)
        changed: Any = {left_out: ()}
        return compute(*before, replace(meant, **changed), waiting, now)

    monkeypatch.setattr("headgate.flow.gold.fold_stage.computed_rows", without)
    assert backfill(lived.engine, tables=["sliding"]).report.result == "differs"


def test_rows_of_a_broken_stage_are_found(
    spark: SparkSession, tmp_path: Path, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream assigns each row to the window after its last one instead of its first; the
    backfill does not. A stage with another number of windows could not commit."""
    pipeline = declare(tmp_path, landing.folder, gold=("sliding",))
    with monkeypatch.context() as patched:
        patched.setattr(assigning, "_starts", _later_starts)
        broken = Engine(spark, pipeline, tmp_path / "root").run_all()
        broken.drain()
    (report,) = backfill(broken).report.tables
    assert report.result == "differs"
    assert report.live != report.backfilled
    assert {each.column for each in report.columns} >= {"events"}


def _later_starts(windows: Windows, column: str) -> Column:
    size, every = micros(windows.size), micros(windows.every)
    last = F.unix_micros(column) - F.pmod(F.unix_micros(column), F.lit(every))
    return F.explode(F.array(*(last - F.lit(k * every) for k in range(-1, size // every - 1))))


def test_a_vacuum_leaves_what_a_backfill_reads(lived: Prepared, tmp_path: Path) -> None:
    """Compaction and vacuum remove all that they may, while the first backfill runs and before the
    second."""
    engine, tables = lived.copy(tmp_path), ["sliding"]

    def maintain(place: str) -> None:
        if place == "backfill.held":
            with passing(None):
                compacted(engine)
                trimmed(engine)

    with passing(maintain):
        assert unequal(backfill(engine, tables=tables)) == []
    assert unequal(backfill(engine, tables=tables)) == [], "over what the vacuum has left"


def test_a_vacuum_leaves_what_is_planned(
    lived: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planning may read bronze for long. What it reads is held before."""
    engine = lived.copy(tmp_path)

    def planned_later(*args: Any) -> BackfillPlan:
        compacted(engine)
        trimmed(engine)
        return plan_backfill(*args)

    monkeypatch.setattr("headgate.history.backfill.running.plan_backfill", planned_later)
    assert unequal(backfill(engine, tables=["sliding"])) == []


def test_a_file_that_is_gone_is_an_error(lived: Prepared, tmp_path: Path) -> None:
    engine = lived.copy(tmp_path)
    bronze = engine.bronze
    bronze.refresh()
    bronze.storage.remove(live_files(bronze.handle)[0].path)
    with pytest.raises(DamagedFileError):
        backfill(engine)


def test_a_backfill_that_dies_leaves_nothing_to_the_next(lived: Prepared, tmp_path: Path) -> None:
    """Each backfill gets further than the previous one."""
    engine = lived.copy(tmp_path)
    for place in ("held", "silver_made", "compared", "reported"):
        with dying(f"backfill.{place}"):
            backfill(engine, tables=["bands"])
        assert len(engine.layout.storage.folders(FOLDER)) == 1, "that of the last one alone"
    assert unequal(backfill(engine, tables=["bands"])) == []
    assert len(engine.layout.storage.folders(FOLDER)) == 1, "that of the last one alone"


def test_a_pipeline_may_have_had_many_drains_and_replays(
    spark: SparkSession, lived: Prepared
) -> None:
    """Scheduled ones are thousands in a year."""
    engine = lived.engine
    stage, silver = engine.runtime.stages.gold["bands"], engine.runtime.table("silver/clean")
    silver.refresh()
    files, noon = tuple(live_files(silver.handle)), int(NOON.timestamp() * 1e6)
    hour = 3_600_000_000
    before = tuple((n, noon - n * hour) for n in range(1_500))
    few = recomputing.RecomputedResults(noon - hour, noon + hour, noon + hour, drains=before[:1])
    replays = tuple((n, LatePairSelection(noon + n, None, ()), noon + n) for n in range(700))
    many = replace(few, drains=before, replays=replays)
    now = engine.clock()
    assert isinstance(stage, FoldStage)
    none = TableRows(engine.spark, stage.late).of(())
    rows = [stage.computed_rows(files, meant, none, now).count() for meant in (few, many)]
    assert rows[0] > 0
    assert rows[0] == rows[1]
