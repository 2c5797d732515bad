"""Corrected copies of refused records: each is taken once, wherever a driver crashes."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.driver.task import RebuildRequest
from headgate.flow.silver.replacements import Replacements
from headgate.history.replay import requests
from headgate.history.replay.refused import RefusedRecords, RefusedSelection
from headgate.insight.ledger.balance import balance
from headgate.lake.tables.replay import corrected_time
from tests.support.declared import source_of
from tests.support.engine import Engine
from tests.support.failing import dying
from tests.support.maintained import compacted, trimmed
from tests.support.replay_project import CORRECTION, ReplayProject, event
from tests.support.rounds import IN_FULL

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def refused(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> ReplayProject:
    """Two rows that a rule rejects, one record of the wrong type, one without an id."""
    project = ReplayProject(tmp_path_factory.mktemp("refused"), spark)
    project.land([event("good", 20), event("low", 1, 1), event("older", 2, 2)])
    project.land([event("text", "x", 3), {"site": "a", "level": 5}, event("last", 70, 200)])
    project.engine().run_all()
    return project


@pytest.fixture
def project(refused: ReplayProject, tmp_path: Path) -> ReplayProject:
    return refused.copy(tmp_path)


EVENTS = [
    event("good", 20),
    event("corrected", 1, 1),
    event("bad", 2, 2),
    event("corrected", 30, 3),
    event("corrected", 40, 4),
    event("bad", 3, 5),
    event("good", 60, 6),
    event("last", 70, 200),
]


@pytest.mark.parametrize("sizes", [(8,), (2, 2, 4)])
def test_a_copy_that_a_producer_sends_takes_the_place_of_a_rejected_row(
    tmp_path: Path, spark: SparkSession, sizes: Iterable[int]
) -> None:
    """However the events are cut into batches, the first copy that meets the rules is in silver."""
    project = ReplayProject(tmp_path, spark)
    events = iter(EVENTS)
    engine = project.engine()
    for size in sizes:
        project.land([next(events) for _ in range(size)])
        engine.run_all()
    project.check(engine)
    silver = {row["_event_id"]: row["level"] for row in project.read("silver/clean")}
    assert silver == {"good": 20, "corrected": 30, "last": 70}
    assert project.ids("rejected/clean") == ["bad", "corrected"]
    assert project.ids("silver/all") == ["bad", "corrected", "good", "last"]
    (clean, _) = balance(engine.layout, engine.pipeline).silver
    assert (clean.replaced, clean.duplicate, clean.rejected) == (1, 3, 2)


def check_replayed(project: ReplayProject, engine: Engine) -> None:
    project.check(engine)
    assert project.ids("silver/clean") == ["good", "last", "low", "older", "text"]
    assert project.ids("silver/all") == ["good", "last", "low", "older", "text"]
    assert project.ids("rejected/clean") == ["low", "older"]
    # Their window was final at the time of the replay.
    assert sorted(row["_event_id"] for row in project.read("late/per_minute")) == [
        *("low", "older", "text")
    ]
    account = balance(engine.layout, engine.pipeline)
    assert (account.read, account.replayed, account.replaced, account.corrected) == (9, 3, 2, 1)


def test_files_of_replays_are_read_only_for_copies_of_rejected_rows(
    project: ReplayProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipeline may have had hundreds of replays, and most batches have duplicates."""
    engine, read = project.engine(), []
    project.ask(engine, CORRECTION)
    engine.take_in()
    corrected_before = Replacements._corrected_before

    def reading(replacements: Replacements, replays: Collection[int]) -> Any:
        read.append(True)
        return corrected_before(replacements, replays)

    monkeypatch.setattr(Replacements, "_corrected_before", reading)
    project.land([event("good", 20)])
    engine.run_all()
    assert not read
    project.land([event("low", 60, 1)])
    engine.run_all()
    assert read
    project.check(engine)
    levels = {row["_event_id"]: row["level"] for row in project.read("silver/clean")}
    assert levels["low"] == 50, "the replay was first"


def test_what_passes_goes_through_once_and_the_rest_stays(project: ReplayProject) -> None:
    engine = project.engine()
    assert [o.kind for o in project.outcomes(engine, RefusedSelection(), None)] == [
        *("rejected", "rejected", "invalid", "invalid")
    ]
    lates = {
        o.corrected.of[0].event_id: o.late
        for o in project.outcomes(engine, RefusedSelection(), CORRECTION)
    }
    late = ("per_minute",)
    assert lates == {"low": late, "older": late, "text": late, None: ()}
    assert project.ask(engine, CORRECTION) == 3
    with pytest.raises(requests.ReplayWaitsError):
        project.ask(engine, CORRECTION)
    engine.take_in()
    check_replayed(project, engine)
    (left,) = RefusedRecords(engine.layout, engine.pipeline, source_of(engine.pipeline)).rows(
        RefusedSelection()
    )
    assert left.reasons == ["missing_id"]
    groups = RefusedRecords(engine.layout, engine.pipeline, source_of(engine.pipeline)).groups(
        RefusedSelection(with_replaced=True)
    )
    assert {(g.table, g.reason): (g.open, g.replaced) for g in groups} == {
        ("quarantine", "missing_id"): (1, 0),
        ("quarantine", "wrong_type"): (0, 1),
        ("rejected.clean", "low"): (0, 2),
    }
    values = {row["_event_id"]: row["level"] for row in project.read("silver/clean")}
    assert values == {"good": 20, "last": 70, "low": 50, "older": 50, "text": 50}
    # If a producer sends two of them again, it is too late: silver has a copy.
    project.land([event("low", 80, 4), event("text", 80, 5)])
    engine.run_all()
    assert {row["_event_id"]: row["level"] for row in project.read("silver/clean")} == values
    project.check(engine)


def test_a_rebuild_repeats_a_replay_at_its_place(project: ReplayProject) -> None:
    engine = project.engine()
    project.ask(engine, CORRECTION)
    engine.take_in()
    taken = engine.savepoint()
    again = project.engine(RebuildRequest(("silver/clean", "silver/all")))
    again.catch_up()
    again.catch_up()
    check_replayed(project, again)
    again.restore(taken)
    restored = project.engine()
    restored.catch_up()
    check_replayed(project, restored)


STEPS = [
    *(("bronze.staged", 1), ("replay.committed", 1), ("silver.committed", 1)),
    *(("bronze.committed", 1), ("silver.staged", 1), ("silver.committed", 2)),
    *(("late.committed", 1), ("gold.committed", 1)),
]


def test_a_rebuild_over_merged_and_vacuumed_tables_repeats_it_too(project: ReplayProject) -> None:
    """No files are merged across a replay: the replay looks up the rows before its place."""
    engine = project.engine()
    project.ask(engine, CORRECTION)
    engine.take_in()
    # For bronze, this is one more copy. Its batches and the replay's batch are small files.
    for _ in range(2):
        project.land([event("low", 80, 4)])
        engine.run_all()
    assert compacted(engine)["bronze/raw"].merged.files > 0
    trimmed(engine)
    again = project.engine(RebuildRequest(("silver/clean", "silver/all")))
    again.catch_up()
    again.catch_up()
    project.check(again)
    values = {row["_event_id"]: row["level"] for row in project.read("silver/clean")}
    assert values == {"good": 20, "last": 70, "low": 50, "older": 50, "text": 50}


@pytest.mark.parametrize(("place", "nth"), STEPS if IN_FULL else STEPS[:3])
def test_a_replay_that_dies_is_finished_by_the_next_driver(
    project: ReplayProject, place: str, nth: int
) -> None:
    engine = project.engine()
    project.ask(engine, CORRECTION)
    with dying(place, nth):
        engine.take_in()
    engine = project.engine()
    engine.take_in()
    assert requests.waiting_replay(engine.layout) is None
    check_replayed(project, engine)


def test_a_replay_that_comes_after_a_reset_is_void(project: ReplayProject) -> None:
    engine = project.engine()
    taken = engine.savepoint()
    project.ask(engine, CORRECTION)
    engine.restore(taken)
    engine = project.engine()
    engine.catch_up()
    engine.take_in()
    assert requests.waiting_replay(engine.layout) is None
    assert balance(engine.layout, engine.pipeline).replayed == 0
    project.check(engine)


def test_a_copy_that_fails_again_can_be_replayed_again(project: ReplayProject) -> None:
    """The rules change between the validation of the copy and its replay."""
    engine = project.engine()
    project.ask(engine, CORRECTION)
    project.write_rules("expectations:\n  - {id: low, expect: level >= 60}\n")
    engine = project.engine()
    engine.take_in()
    project.check(engine)
    assert project.ids("silver/clean") == ["good", "last"]
    higher = "json_merge_patch(value, '{\"level\": 90}')"
    assert project.ask(engine, higher) == 3
    engine.take_in()
    project.check(engine)
    assert project.ids("silver/clean") == ["good", "last", "low", "older", "text"]


def test_a_corrected_record_keeps_its_id(project: ReplayProject) -> None:
    engine = project.engine()
    other = 'json_merge_patch(value, \'{"level": 50, "id": "other"}\')'
    found = project.outcomes(engine, RefusedSelection(rule="low"), other)
    assert {o.kind for o in found} == {"other id"}


def test_values_are_kept_as_they_came(project: ReplayProject) -> None:
    engine = project.engine()
    project.ask(engine, CORRECTION, RefusedSelection(reason="wrong_type"))
    engine.take_in()
    (copy,) = [row for row in project.read("bronze/raw") if row["partition"] < 0]
    assert json.loads(copy["value"])["level"] == 50
    assert corrected_time(copy["headers"]) == "", "no table has rejected an invalid record"
    assert [header["key"] for header in copy["headers"]] == [
        "headgate.corrects",
        "headgate.corrects_time",
    ]
