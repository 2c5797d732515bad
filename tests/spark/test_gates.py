"""A version of gold that breaks a rule is held until it meets the rules or is released."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from headgate.declaration.expectations.aggregates import AGGREGATES, Values
from headgate.declaration.load import load
from headgate.driver.task import RebuildRequest
from headgate.flow.gates import documents
from headgate.flow.gates.documents import Hold, Rejection, Release
from headgate.flow.gates.validations import validations
from headgate.flow.operations.carrying_out import REJECTION
from headgate.history.savepoints.declarations import keep_declaration
from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from headgate.lake.control import requests
from headgate.lake.storage.documents import encoded
from headgate.lake.tables.payloads.gold import GoldPayload
from tests.support.engine import Engine
from tests.support.failing import dying
from tests.support.readings import NOON
from tests.support.rounds import in_full
from tests.support.suite_project import SuiteProject

pytestmark = pytest.mark.spark

Row = dict[str, Any]
TABLES = """
silver:
  clean: {from: raw}
gold:
  per_minute:
    from: clean
    window: {tumbling: 1 minute}
    by: [site]
    measures: {events: count(*), total: sum(level)}
    allowed_lateness: 1 minute
    expectations: per_minute
"""
WITHOUT_GATE = """\
  per_hour:
    from: clean
    window: {tumbling: 1 hour}
    measures: {events: count(*)}
    allowed_lateness: 1 minute
"""
RULES = """
expectations:
  - {id: sane, expect: "total < 1000"}
  - {id: keys, expect: expect_compound_columns_to_be_unique, column_list: [window_start, site]}
  - {id: rows, expect: expect_table_row_count_to_be_between, min_value: 1}
  - {id: small, expect: expect_column_max_to_be_between, column: events, max_value: 2, action: warn}
"""
BAD = 5000
BEFORE = (NOON - timedelta(hours=1)).isoformat()


class Project(SuiteProject):
    def __init__(self, folder: Path, spark: SparkSession, tables: str = TABLES) -> None:
        super().__init__(folder, spark, tables, "per_minute")
        self.write_rules(RULES)
        self.levels: tuple[int, ...] = ()

    def deliver(self, *levels: int) -> None:
        events = []
        for number, level in enumerate(levels, len(self.levels)):
            at = (NOON + timedelta(seconds=20 * number)).isoformat()
            events.append({"id": f"e{number}", "site": "North", "level": level, "at": at})
        self.levels += levels
        self.land(events)

    def gold(self) -> list[Row]:
        return self.read("gold/per_minute")

    def check(self, engine: Engine, levels: Iterable[int]) -> None:
        """Gold has folded these events and no other, and every event is accounted for."""
        wanted: dict[Any, list[int]] = {}
        for number, level in enumerate(levels):
            at = NOON + timedelta(seconds=20 * number)
            wanted.setdefault(at.replace(second=0), []).append(level)
        assert {row["window_start"]: (row["events"], row["total"]) for row in self.gold()} == {
            start: (len(found), sum(found)) for start, found in wanted.items()
        }
        assert balance(engine.layout, engine.pipeline).differences == ()
        assert by_id(engine.layout, engine.pipeline).findings == ()

    def versions(self) -> list[int]:
        """The greatest total in each version that readers could have seen."""
        table = DeltaTable(str(self.root / "readings/gold/per_minute"))
        seen = []
        for version in range(table.version() + 1):
            table.load_as_version(version)
            totals = table.to_pyarrow_table(columns=["total"]).column("total").to_pylist()
            seen.append(max(totals, default=0))
        return seen


@pytest.fixture
def project(tmp_path: Path, spark: SparkSession) -> Project:
    return Project(tmp_path, spark)


def position(engine: Engine, table: str) -> int:
    return engine.runtime.table(table).refresh().n


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """Of two batches, the first is visible, and the second is held."""
    project = Project(tmp_path_factory.mktemp("begun"), spark)
    project.deliver(1)
    engine = project.engine().run_all()
    project.deliver(BAD)
    engine.run_all()
    return project


@pytest.fixture
def held(begun: Project, tmp_path: Path) -> Project:
    return begun.copy(tmp_path)


LATE: dict[str, Any] = {"table": "per_minute", "from": None, "to": None, "keys": {}}
"""The document of a replay of late rows."""


@pytest.fixture(scope="module")
def replaying(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Project:
    """A replay of a late row that breaks a rule is held."""
    project = Project(tmp_path_factory.mktemp("replaying"), spark)
    project.deliver(1, 2, 3)
    engine = project.engine().run_all()
    project.land([{"id": "late", "site": "North", "level": BAD, "at": BEFORE}])
    engine.run_all()
    engine.operate("late_replay", **LATE)
    engine.catch_up()
    return project


@pytest.fixture
def held_replay(replaying: Project, tmp_path: Path) -> tuple[Project, Engine, Hold]:
    project = replaying.copy(tmp_path)
    engine = project.engine()
    (held,) = documents.holds(engine.layout, engine.pipeline)
    return project, engine, held


def test_a_held_version_is_not_visible_while_all_else_goes_on(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = Project(tmp_path, spark, TABLES + WITHOUT_GATE)
    monkeypatch.setattr("headgate.flow.gates.gate.PAUSE", 1e6)  # the pause never ends in this test
    project.deliver(1, 2, 3)
    engine = project.engine().run_all()
    project.check(engine, [1, 2, 3])
    payload = GoldPayload.of(engine.runtime.table("gold/per_minute").refresh())
    assert payload.gate is not None
    assert payload.gate["broken"] == ["small"]
    project.deliver(BAD, 4)
    engine.run_all()
    project.check(engine, [1, 2, 3])
    assert [position(engine, t) for t in ("silver/clean", "gold/per_hour")] == [2, 2]
    held = documents.hold_reason(engine.layout, "per_minute")
    assert held is not None
    assert (held.n, held.upto, [r.rule for r in held.failed]) == (1, 2, ["sane"])
    assert "1 row breaks it" in str(held.failed[0])
    assert not engine.runtime.catch_up(engine.clock()), "an idle driver would forget it"
    # It is not tried again at once, except on request.
    at = held.at
    project.deliver(5)
    engine.run_all()
    assert documents.hold_reason(engine.layout, "per_minute") == held
    documents.ask_retry(engine.layout, "per_minute", engine.clock())
    engine.catch_up()
    again = documents.hold_reason(engine.layout, "per_minute")
    assert again is not None
    assert (again.since, again.upto) == (held.since, 3)
    assert again.at > at
    assert max(project.versions()) < 1000
    project.check(engine, [1, 2, 3])


def test_a_person_releases_one_version(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.flow.gates.gate.PAUSE", 1e6)  # only the release ends the pause
    project.deliver(1)
    engine = project.engine().run_all()
    project.deliver(BAD)
    engine.run_all()
    project.deliver(2)
    engine.run_all()
    first = documents.hold_reason(engine.layout, "per_minute")
    assert first is not None
    (row,) = documents.shown_rows(engine.layout, first).document()["rows"]
    assert row["rules"] == ["sane"]
    assert row["after"] == {
        "window_start": "2026-03-01 11:30:00",
        "window_end": "2026-03-01 11:31:00",
        "site": "North",
        "events": "2",
        "total": str(BAD + 1),
    }
    assert row["before"] is not None
    assert (row["before"]["events"], row["before"]["total"]) == ("1", "1")
    given = replace(first.release("anna@host", "a real outlier", engine.clock()), upto=2)
    documents.release(engine.layout, "per_minute", given)
    engine.catch_up()
    project.check(engine, [1, BAD])
    table = engine.runtime.table("gold/per_minute")
    payload = GoldPayload.of(table.refresh())
    assert payload.gate is not None
    assert payload.gate["released"] == given.document()
    found = validations(engine.layout, "per_minute")
    assert [(v.n, v.outcome) for v in found] == [
        (1, "met"),
        (2, "held"),
        (2, "released"),
        (3, "held"),
    ]
    assert (found[2].version, found[2].released) == (table.version, replace(given, accepted=()))
    assert {r.rule: (r.unexpected, r.rows) for r in found[2].broken} == {"sane": (1, 1)}
    # What follows is validated like any other version: its window has changed.
    held = documents.hold_reason(engine.layout, "per_minute")
    assert held is not None
    assert (held.n, held.upto) == (2, 3)
    (row,) = documents.shown_rows(engine.layout, held).document()["rows"]
    assert row["before"] is not None
    assert (row["before"]["events"], row["after"]["events"]) == ("2", "3")
    # Once it is released and no longer changes, it holds no version, and a new outlier does.
    documents.release(engine.layout, "per_minute", held.release("anna", "", engine.clock()))
    engine.catch_up()
    project.deliver(4)
    engine.run_all()
    project.check(engine, [1, BAD, 2, 4])
    payload = GoldPayload.of(engine.runtime.table("gold/per_minute").refresh())
    assert payload.gate is not None
    assert (payload.gate["broken"], payload.gate["released"]) == (["sane", "small"], None)
    assert [each["by"] for each in payload.gate["earlier"]] == ["anna"]
    project.deliver(BAD)
    engine.run_all()
    project.check(engine, [1, BAD, 2, 4])
    held = documents.hold_reason(engine.layout, "per_minute")
    assert held is not None
    (row,) = documents.shown_rows(engine.layout, held).document()["rows"]
    assert row["after"]["total"] == str(BAD + 4)


# In short runs, tests/recovery/test_gates.py covers gate.validated.
@pytest.mark.parametrize(
    "place",
    [
        "gold.committed",
        *(
            pytest.param(each, marks=in_full)
            for each in ("gate.validated", "gold.staged", "late.committed")
        ),
    ],
)
def test_killed_with_a_release_in_its_hands(held: Project, place: str) -> None:
    project, engine = held, held.engine()
    documents.release(engine.layout, "per_minute", Release(2, "a", "b", engine.clock()))
    with dying(place, certainly=place != "late.committed"):
        engine.catch_up()
    again = project.engine()
    again.catch_up()
    project.check(again, [1, BAD])
    project.deliver(3)
    again.run_all()
    project.check(again, [1, BAD])
    assert sum(total >= 1000 for total in project.versions()) >= 1


def test_a_rebuild_that_breaks_a_rule_is_not_published(project: Project) -> None:
    project.deliver(1, 2)
    project.engine().run_all()
    project.deliver(3)
    project.engine().run_all()
    project.write_rules(RULES.replace("1000", "3"))
    engine = project.engine(RebuildRequest(("gold/per_minute",)))
    engine.catch_up()
    engine.catch_up()
    project.check(engine, [1, 2, 3])
    (held,) = documents.holds(engine.layout, engine.pipeline)
    assert (held.table, bool(held.log), held.upto) == ("per_minute", True, 2)
    (row,) = documents.shown_rows(engine.layout, held).rows
    assert (row.change, (row.before or {})["total"]) == ("seen", "6"), "readers see it already"
    # The current table goes on, and its rebuild has to follow.
    given = held.release("anna@host", "a real outlier", engine.clock())
    documents.release(engine.layout, held.gate, given)
    project.deliver(4)
    engine.run_all()
    found = {bool(hold.log): hold for hold in documents.holds(engine.layout, engine.pipeline)}
    assert found.keys() == {False, True}, "nobody has seen the new row"
    held = found[True]
    (row,) = documents.shown_rows(engine.layout, held).document()["rows"]
    assert (row["after"]["total"], row["before"]) == ("4", None)
    again = held.release("anna@host", "this one, too", engine.clock())
    documents.release(engine.layout, held.gate, again)
    engine.catch_up()
    assert engine.runtime.rebuild is None
    project.check(engine, [1, 2, 3, 4])
    assert documents.holds(engine.layout, engine.pipeline) == ()
    payload = GoldPayload.of(engine.runtime.table("gold/per_minute").refresh())
    assert payload.gate is not None
    assert (payload.gate["broken"], payload.gate["released"]) == (
        ["sane", "small"],
        again.document(),
    )


def test_while_another_table_is_rebuilt_the_declared_rules_are_used(project: Project) -> None:
    """A declaration without them was deployed in between, and is kept."""
    text = project.declaration.read_text() + WITHOUT_GATE
    project.declaration.write_text(text)
    project.deliver(1)
    engine = project.engine().run_all()
    without = text.replace("    expectations: per_minute\n", "")
    project.declaration.write_text(without.replace("1 hour}", "2 hours}"))
    between = load(project.declaration)
    table = "gold/per_minute"
    assert between.definitions[table] == engine.pipeline.definitions[table]
    keep_declaration(engine.layout, between)
    project.declaration.write_text(text)
    engine = project.engine(RebuildRequest(("gold/per_hour",)))
    assert engine.runtime.rebuild is not None
    project.deliver(BAD)
    engine.list_new()
    engine.ingest()
    engine.catch_up()
    (held,) = documents.holds(engine.layout, engine.pipeline)
    assert held.table == "per_minute"
    project.check(engine, [1])


def test_a_rule_that_passes_again_lets_the_held_batches_in_also_from_a_savepoint(
    held: Project,
) -> None:
    project = held
    taken = project.engine().savepoint()
    project.deliver(2)
    project.write_rules(RULES.replace("1000", "10000"))
    again = project.engine().run_all()
    project.check(again, [1, BAD, 2])
    assert documents.hold_reason(again.layout, "per_minute") is None
    again.restore(taken)
    restored = project.engine()
    restored.catch_up()
    project.check(restored, [1, BAD, 2])


def test_a_rule_that_cannot_be_validated_holds(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(values: Values, name: str) -> None:
        raise ValueError(f"the values of {name!r} cannot be added up")

    name = "expect_column_mean_to_be_between"
    monkeypatch.setitem(AGGREGATES, name, fail)
    project.write_rules(
        f"expectations:\n- {{id: odd, expect: {name}, column: total, min_value: 1}}"
    )
    project.deliver(1)
    engine = project.engine().run_all()
    held = documents.hold_reason(engine.layout, "per_minute")
    assert held is not None
    assert held.failed[0].error
    assert project.gold() == []


def test_a_held_replay_can_be_released(held_replay: tuple[Project, Engine, Hold]) -> None:
    """The held version has the batch id that the table has reached already."""
    project, engine, held = held_replay
    project.check(engine, [1, 2, 3])
    assert (held.n, held.upto, held.operation) == (2, 2, 1)
    documents.release(engine.layout, "per_minute", held.release("anna", "right", engine.clock()))
    engine.catch_up()
    assert documents.holds(engine.layout, engine.pipeline) == ()
    assert max(row["total"] for row in project.gold()) == BAD
    assert balance(engine.layout, engine.pipeline).differences == ()
    assert by_id(engine.layout, engine.pipeline).findings == ()
    # The released row holds no later version, until another replay changes it.
    project.deliver(4)
    engine.run_all()
    assert position(engine, "gold/per_minute") == 3
    again = {"id": "late again", "site": "North", "level": 1, "at": BEFORE}
    project.land([again])
    engine.run_all()
    engine.operate("late_replay", **LATE)
    engine.catch_up()
    (held,) = documents.holds(engine.layout, engine.pipeline)
    (row,) = documents.shown_rows(engine.layout, held).document()["rows"]
    assert row["before"] is not None
    assert (row["before"]["total"], row["after"]["total"]) == (str(BAD), str(BAD + 1))


def reject(engine: Engine, hold: Hold) -> None:
    given = Rejection(
        "r1", hold.table, hold.operation, hold.generation, "anna", "not ours", engine.clock()
    )
    documents.reject(engine.layout, given)


def test_a_rejected_replay_leaves_its_rows_late_also_in_a_rebuild(
    held_replay: tuple[Project, Engine, Hold],
) -> None:
    """However often the driver dies on the way."""
    project, engine, held = held_replay
    assert [row["replayed"] for row in project.read("late/per_minute")] == [1]
    reject(engine, held)
    for place in ("operation.rejected", "late.committed", "operation.table_done"):
        with dying(place):
            engine.catch_up()  # asks bronze's job
            engine.take_in()
        engine = project.engine()
    engine.take_in()
    assert documents.holds(engine.layout, engine.pipeline) == ()
    project.check(engine, [1, 2, 3])
    assert [row["replayed"] for row in project.read("late/per_minute")] == [None]
    assert engine.runtime.table("late/per_minute").refresh().total["replayed"] == 0
    project.deliver(4)
    engine.run_all()
    project.check(engine, [1, 2, 3, 4])
    (operation,) = engine.operations()
    assert operation.document["rejected"]["per_minute"]["by"] == "anna"
    assert operation.document["rejected"]["per_minute"]["reason"] == "not ours"
    again = project.engine(RebuildRequest(("gold/per_minute",)))
    again.catch_up()
    assert again.runtime.rebuild is None
    project.check(again, [1, 2, 3, 4])
    # The rows can be replayed again.
    again.operate("late_replay", **LATE)
    again.catch_up()
    (held,) = documents.holds(again.layout, again.pipeline)
    documents.release(again.layout, "per_minute", held.release("anna", "ours", again.clock()))
    again.catch_up()
    assert max(row["total"] for row in project.gold()) == BAD
    assert balance(again.layout, again.pipeline).differences == ()
    assert by_id(again.layout, again.pipeline).findings == ()


def test_a_rejection_that_comes_too_late_changes_nothing(
    held_replay: tuple[Project, Engine, Hold],
) -> None:
    """The version was released, and is visible."""
    project, engine, held = held_replay
    documents.release(engine.layout, "per_minute", held.release("bert", "ours", engine.clock()))
    engine.catch_up()
    decisions = engine.decisions()
    reject(engine, held)
    engine.catch_up()
    document = encoded(Rejection("r1", "per_minute", 1, 0, "anna", "not ours", engine.clock()))
    requests.send_request(engine.layout, REJECTION, document, engine.clock(), "r1")
    engine.take_in()
    assert engine.decisions() == decisions
    assert max(row["total"] for row in project.gold()) == BAD
    assert by_id(engine.layout, engine.pipeline).findings == ()


def test_a_rejection_and_a_release_reach_a_job_per_layer(
    held_replay: tuple[Project, Engine, Hold],
) -> None:
    """The job of gold asks the job of bronze, and no longer tries what is rejected."""
    project, engine, held = held_replay
    documents.release(engine.layout, "per_minute", held.release("bert", "ours", engine.clock()))
    engine.catch_up_per_layer()
    assert max(row["total"] for row in project.gold()) == BAD
    engine = project.engine()
    project.land([{"id": "more", "site": "North", "level": 1, "at": held.since.isoformat()}])
    engine.run_all()
    early = (NOON - timedelta(hours=2)).isoformat()
    project.land([{"id": "late, too", "site": "North", "level": BAD, "at": early}])
    engine.run_all()
    engine.operate("late_replay", **LATE)
    engine.catch_up_per_layer()
    (held,) = documents.holds(engine.layout, engine.pipeline)
    reject(engine, held)
    engine.catch_up_per_layer()
    assert [each.kind for each in requests.waiting_requests(engine.layout)] == [REJECTION]
    engine = project.engine()
    engine.take_in()
    assert documents.holds(engine.layout, engine.pipeline) == ()
    assert sorted(row["replayed"] or 0 for row in project.read("late/per_minute")) == [0, 1]
    assert by_id(engine.layout, engine.pipeline).findings == ()
