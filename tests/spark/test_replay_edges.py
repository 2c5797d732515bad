"""Replays where ids, times, several tables or a rule that stops the stream get in the way."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.flow.silver.copies import Earlier
from headgate.flow.silver.replacements import Replacements
from headgate.history.replay.refused import RefusedRecords, RefusedSelection
from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from tests.support.declared import source_of
from tests.support.replay_project import CORRECTION, RULES, ReplayProject, ask, event
from tests.support.rounds import IN_FULL

pytestmark = pytest.mark.spark

SEVERAL = """
silver:
  clean: {from: raw, expectations: clean}
  strict: {from: raw, expectations: strict}
  stopped: {from: raw, where: level >= 0, expectations: stopped}
gold:
  per_minute:
    from: clean
    window: {tumbling: 1 minute}
    measures: {events: count(*)}
    allowed_lateness: 0 s
"""
STRICT = "expectations: [{id: high, expect: level >= 40}]"
STOPPED = "expectations: [{id: few, expect: level < 90, action: stop, above: 60 %}]"


def several(folder: Path, spark: SparkSession) -> ReplayProject:
    project = ReplayProject(folder, spark, SEVERAL)
    for name, text in (("strict", STRICT), ("stopped", STOPPED)):
        (folder / "expectations" / f"{name}.yml").write_text(text)
    return project


def level(number: int) -> str:
    return f"json_merge_patch(value, '{{\"level\": {number}}}')"


def levels(project: ReplayProject, table: str) -> dict[str, int]:
    rows = project.read(f"silver/{table}")
    found = {row["_event_id"]: row["level"] for row in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize("duplicates", [False, True] if IN_FULL else [False])
def test_each_of_several_tables_takes_a_record_once(
    tmp_path: Path, spark: SparkSession, duplicates: bool
) -> None:
    """With and without a rule for duplicates. Without it, only its header tells which record a copy
    corrects."""
    project = several(tmp_path, spark)
    if not duplicates:
        text = project.declaration.read_text()
        project.declaration.write_text(text.replace("      duplicates: {within: 10 minutes}\n", ""))
    project.land([event("low", 1), event("high", 70, 1), event("filtered", -1, 2)])
    engine = project.engine().run_all()
    assert project.ask(engine, level(20), RefusedSelection(event_id="low")) == 1
    engine.take_in()
    assert (levels(project, "clean"), levels(project, "strict")) == (
        *({"low": 20, "high": 70}, {"high": 70}),
    )
    assert project.ask(engine, level(50), RefusedSelection(event_id="low")) == 1
    engine.take_in()
    project.check(engine)
    assert levels(project, "clean") == {"low": 20, "high": 70}
    assert levels(project, "strict") == {"low": 50, "high": 70}
    assert levels(project, "stopped") == {"low": 1, "high": 70}
    (outcome,) = project.outcomes(engine, RefusedSelection(), level(95))
    # Table `stopped` has filtered the record, so it is decided there. In a replay, the share of
    # broken rows never stops the stream.
    assert (outcome.tables, outcome.kind) == (("clean", "strict"), "silver")


def test_the_proof_finds_a_record_that_is_taken_twice(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = ReplayProject(tmp_path, spark)
    project.land([event("low", 1)])
    engine = project.engine().run_all()
    monkeypatch.setattr(Replacements, "_corrected_before", lambda *_: set())
    monkeypatch.setattr(Earlier, "has_copy_of", lambda *_: False)
    (outcome,) = project.outcomes(engine, RefusedSelection(), CORRECTION)
    for _ in range(2):
        ask(engine, [outcome.corrected])
        engine.take_in()
    (finding,) = by_id(engine.layout, engine.pipeline).findings
    assert (finding.table, finding.problem) == ("silver/clean", "copies of one record")
    (example,) = finding.examples
    assert (example["event_id"], example["times"]) == ("low", 2)


def test_a_replay_stops_no_stream(tmp_path: Path, spark: SparkSession) -> None:
    project = several(tmp_path, spark)
    project.land([event("text", "x"), event("high", 70, 1)])
    engine = project.engine().run_all()
    assert project.ask(engine, level(95)) == 1
    engine.take_in()
    project.check(engine)
    assert levels(project, "clean") == {"text": 95, "high": 70}
    assert project.ids("rejected/stopped") == ["text"]


def test_a_copy_with_another_time_is_the_same_record(tmp_path: Path, spark: SparkSession) -> None:
    """Also if its new time is after all times of the source, and a new driver looks for
    duplicates."""
    project = ReplayProject(tmp_path, spark)
    project.land([event("low", 1, 1), event("again", 2, 2), event("again", 3, 3000)])
    project.land([{**event("no time", 20), "at": "?"}, event("high", 70, 5)])
    engine = project.engine().run_all()
    later = event("", 50, 10_000)
    patch = f'json_merge_patch(value, \'{{"level": 50, "at": "{later["at"]}"}}\')'
    moved = "CASE WHEN event_id = 'again' THEN " + CORRECTION + " ELSE " + patch + " END"
    assert [o.kind for o in project.outcomes(engine, RefusedSelection(), moved)] == ["silver"] * 4
    assert project.ask(engine, moved) == 4
    engine.take_in()
    assert (
        RefusedRecords(engine.layout, engine.pipeline, source_of(engine.pipeline)).rows(
            RefusedSelection()
        )
        == []
    )
    taken = ["again", "again", "high", "low", "no time"]
    assert project.ids("silver/clean") == taken
    engine = project.engine()
    project.land([event("low", 60, 2), event("low", 60, 10_001), event("no time", 60, 10_001)])
    engine.run_all()
    assert project.ids("silver/clean") == taken
    assert balance(engine.layout, engine.pipeline).differences == ()
    assert by_id(engine.layout, engine.pipeline).findings == ()


def test_an_open_record_whose_id_was_sent_again_and_filtered(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Bronze has a valid copy, so no table takes another one, and the outcome is ``known``."""
    tables = (
        "silver: {clean: {from: raw, where: level > 0, expectations: clean}}\n"
        "gold: {per_minute: {from: clean, window: {tumbling: 1 minute}, "
        "measures: {events: count(*)}, allowed_lateness: 0 s}}\n"
    )
    project = ReplayProject(tmp_path, spark, tables)
    project.write_rules(RULES)
    project.land([event("a", "x"), event("a", -1, 1), event("b", "x", 2), event("b", "y", 3)])
    engine = project.engine().run_all()
    found = {
        o.corrected.position.offset & 0xFFFF: o
        for o in project.outcomes(engine, RefusedSelection(), CORRECTION)
    }
    told = [(o.corrected.of[0].event_id, o.kind) for _, o in sorted(found.items())]
    assert told == [("a", "known"), ("b", "silver"), ("b", "known")]


def test_the_same_bytes_are_validated_again_only_by_other_rules(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = ReplayProject(tmp_path, spark)
    again = event("low", 5, 1)
    project.land([again, event("high", 70, 1)])
    engine = project.engine().run_all()
    with monkeypatch.context() as patched:
        patched.setattr(Replacements, "_conforming", None)  # no Spark job may run
        project.land([again, event("other", 4, 2), event("other", 4, 2)])
        engine.run_all()
    project.check(engine)
    assert project.ids("silver/clean") == ["high"]
    project.write_rules(RULES.replace("10", "5"))
    project.land([again, event("other", 4, 2), again])
    engine = project.engine().run_all()
    project.check(engine)
    assert levels(project, "clean") == {"low": 5, "high": 70}
