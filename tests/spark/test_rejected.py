"""Rows that break a rule: each is rejected once, with all its broken rules and its bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.driver.task import RebuildRequest
from headgate.flow.silver.rules import RuleStopsError
from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from tests.support.engine import Engine
from tests.support.failing import dying
from tests.support.readings import NOON
from tests.support.suite_project import SuiteProject

pytestmark = pytest.mark.spark

Row = dict[str, Any]
TABLES = """
silver:
  clean: {from: raw, where: level < 90, expectations: clean}
  all: {from: raw}
gold:
  per_minute:
    from: clean
    window: {tumbling: 1 minute}
    by: [site]
    measures: {events: count(*), total: sum(level)}
    allowed_lateness: 1 minute
"""
RULES: Mapping[str, tuple[str, Callable[[Row], bool]]] = {
    "low": ("expect: level >= 10", lambda row: row["level"] is not None and row["level"] < 10),
    "high": (
        "expect: expect_column_values_to_be_between, column: level, max_value: 80",
        lambda row: row["level"] is not None and row["level"] > 80,
    ),
    "named": (
        "expect: expect_column_values_to_not_be_null, column: site, action: warn, severity: info",
        lambda row: row["site"] is None,
    ),
}
STRICTER = "expect: level >= 50"
"""Another rule under the id ``low``."""
LEVELS = (3, 5, 40, 60, 85, 88, 95, None)


def event(number: int) -> Row:
    site = None if number % 5 == 0 else f"site-{number % 3}"
    at = NOON + timedelta(seconds=7 * number)
    row = {"id": f"e{number}", "site": site, "level": LEVELS[number % len(LEVELS)]}
    return {**row, "at": at.isoformat()}


class Project(SuiteProject):
    def __init__(self, folder: Path, spark: SparkSession) -> None:
        super().__init__(folder, spark, TABLES, "clean")
        self.rules(**{name: text for name, (text, _) in RULES.items()})
        self.events: list[Row] = []

    def rules(self, **rules: str) -> None:
        listed = (f"  - {{id: {name}, {text}}}\n" for name, text in rules.items())
        self.write_rules("expectations:\n" + "".join(listed))

    def deliver(self, numbers: Iterable[int]) -> None:
        events = [event(number) for number in numbers]
        self.events += events
        self.land(events)

    def check(self, engine: Engine, of: Callable[[Row], Iterable[str]]) -> None:
        """Every event is where its rules send it, by id. ``of`` gives the rules that it breaks."""
        kept: dict[str, list[str]] = {}
        rejected: dict[str, list[str]] = {}
        for each in self.events:
            if each["level"] is None or each["level"] >= 90:
                continue
            broken = list(of(each))
            into = rejected if {"low", "high"} & set(broken) else kept
            into[each["id"]] = broken
        silver = self.read("silver/clean")
        assert {row["_event_id"]: row["_warnings"] or [] for row in silver} == kept
        rows = self.read("rejected/clean")
        assert {r["event_id"]: [rule["id"] for rule in r["rules"]] for r in rows} == rejected
        assert len(rows) == len(rejected)
        assert len(silver) == len(kept)
        bytes_of = {each["id"]: json.dumps(each).encode() for each in self.events}
        assert all(row["value"] == bytes_of[row["event_id"]] for row in rows)
        assert len(self.read("silver/all")) == len(self.events)
        gold = sum(row["events"] for row in self.read("gold/per_minute"))
        assert gold + len(self.read("late/per_minute")) == len(kept)
        account = balance(engine.layout, engine.pipeline)
        assert account.differences == ()
        (clean, _) = account.silver
        assert (clean.silver, clean.rejected) == (len(kept), len(rejected))
        assert by_id(engine.layout, engine.pipeline).findings == ()


def broken(row: Row) -> list[str]:
    return [name for name, (_, breaks) in RULES.items() if breaks(row)]


def broken_stricter(row: Row) -> list[str]:
    found = broken(row)
    if row["level"] is not None and row["level"] < 50 and "low" not in found:
        return ["low", *found]
    return found


@pytest.fixture
def project(tmp_path: Path, spark: SparkSession) -> Project:
    return Project(tmp_path, spark)


def test_a_row_is_in_one_place_with_all_its_broken_rules(project: Project) -> None:
    project.deliver(range(40))
    engine = project.engine().run_all()
    project.deliver(range(30, 60))
    project.events = [event(number) for number in range(60)]
    engine.run_all()
    project.check(engine, broken)
    (severity,) = {
        rule["severity"]
        for row in project.read("rejected/clean")
        for rule in row["rules"]
        if rule["id"] == "named"
    }
    assert severity == "info"
    counts = engine.runtime.table("silver/clean").refresh().total
    wanted = [rule for each in project.events if _offered(each) for rule in broken(each)]
    assert {name: counts[f"rule:{name}"] for name in RULES} == {
        name: wanted.count(name) for name in RULES
    }


def _offered(row: Row) -> bool:
    return row["level"] is not None and row["level"] < 90


@pytest.mark.parametrize(
    ("place", "nth", "was_decided"),
    # Opening commits once to the table of rejected rows and once to each of two silver tables.
    [("rejected.staged", 1, False), ("rejected.committed", 2, True), ("silver.committed", 4, True)],
)
def test_rules_that_change_apply_from_the_next_batch_on(
    project: Project, place: str, nth: int, was_decided: bool
) -> None:
    """If a crash has left silver behind its rejected rows, the old rules still apply to that
    batch."""
    project.deliver(range(20))
    with dying(place, nth):
        project.engine().run_all()
    project.rules(**{name: text for name, (text, _) in RULES.items()} | {"low": STRICTER})
    engine = project.engine()
    engine.catch_up()
    old = broken if was_decided else broken_stricter
    project.check(engine, old)
    before = {each["id"] for each in project.events}
    project.deliver(range(20, 50))
    engine.run_all()
    project.check(engine, lambda row: (old if row["id"] in before else broken_stricter)(row))


def test_a_rebuild_decides_all_rows_anew(project: Project) -> None:
    project.deliver(range(40))
    project.engine().run_all()
    project.rules(**{name: text for name, (text, _) in RULES.items()} | {"low": STRICTER})
    engine = project.engine(RebuildRequest(("silver/clean",)))
    engine.catch_up()
    engine.catch_up()
    project.check(engine, broken_stricter)


def test_a_restored_savepoint_gives_the_same_rows(project: Project) -> None:
    project.deliver(range(20))
    engine = project.engine().run_all()
    taken = engine.savepoint()
    project.deliver(range(20, 40))
    engine.run_all()
    engine.restore(taken)
    again = project.engine()
    again.catch_up()
    project.check(again, broken)


def test_too_many_broken_rows_stop_the_stream_before_silver(project: Project) -> None:
    stop = {"low": f"{RULES['low'][0]}, action: stop, above: 20 %", "high": RULES["high"][0]}
    project.rules(**stop, named=RULES["named"][0])
    project.deliver(range(40))
    with pytest.raises(RuleStopsError, match=r"10 of 30 rows break the rule 'low'") as stopped:
        project.engine().run_all()
    assert "expectations/clean.yml" in (stopped.value.remedy or "")
    assert (project.read("silver/clean"), project.read("rejected/clean")) == ([], [])
    project.rules(**{name: text for name, (text, _) in RULES.items()})
    engine = project.engine()
    engine.catch_up()
    project.check(engine, broken)


def test_batches_after_a_bad_one_do_not_hide_it(project: Project) -> None:
    """Bronze's own job goes on while silver is stopped. The share is that of each batch."""
    stop = {"low": f"{RULES['low'][0]}, action: stop, above: 20 %"}
    project.rules(**stop)
    project.deliver(range(40))
    engine = project.engine()
    engine.list_new()
    engine.ingest()
    for first in range(100, 400, 100):
        project.land([event(n) | {"level": 50} for n in range(first, first + 90)])
        engine.list_new()
        engine.ingest()
    for _ in range(2):
        with pytest.raises(RuleStopsError, match=r"10 of 30 rows break the rule 'low'"):
            engine.catch_up()
        engine = project.engine()
    assert project.read("silver/clean") == []
