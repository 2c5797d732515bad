"""Fields that a declaration adds inside columns: they are null in rows that were read before, and
nothing is read again or rebuilt."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.driver.errors import DefinitionChangedError
from headgate.driver.task import RebuildRequest
from headgate.flow.operations.late_replay import replay_document
from headgate.history.savepoints.deployment import deployment_of
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import savepoints
from headgate.insight.ledger.by_id import by_id
from headgate.lake.storage.layout import Layout
from tests.support.backfilled import backfill, unequal
from tests.support.changing_project import ADDED, ALL, ChangingProject, files, full
from tests.support.delta_readers import with_deltalake, with_duckdb, with_polars
from tests.support.engine import Engine
from tests.support.failing import failing
from tests.support.maintained import compacted
from tests.support.nested_project import event
from tests.support.rounds import in_full
from tests.support.spark_reader import with_spark
from tests.support.tables import Row, states

pytestmark = pytest.mark.spark

NESTED = "[address, items, counts, parts]"
CHANGED = RebuildRequest(changed=True)


OLD: tuple[Any, ...] = (None,) * 4


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> ChangingProject:
    """Three batches, with late rows and refused ones. Silver has not processed the last one."""
    project = ChangingProject(tmp_path_factory.mktemp("before"), spark)
    dear = [{"sku": "a", "price": 101, "vat": 1}]
    bare = event("bare", address=None, items=None)
    engine = project.run([full("a"), full("b", 9), {**full("dear"), "items": dear}, bare])
    project.run([full("late"), {**full("bad"), "items": [{"price": "x"}]}], engine=engine)
    engine.savepoint()
    project.land([full("waits", 9)])
    engine.list_new()
    engine.ingest()
    return project


@pytest.fixture
def project(before: ChangingProject, tmp_path: Path) -> ChangingProject:
    return before.copy(tmp_path)


@pytest.fixture(scope="module")
def after(before: ChangingProject, tmp_path_factory: pytest.TempPathFactory) -> ChangingProject:
    """The project after the upgrade and one more batch."""
    project = before.copy(tmp_path_factory.mktemp("after"))
    project.change(*ADDED)
    project.run([full("new", 9), full("late too", 1)], engine=project.engine(CHANGED))
    return project


@pytest.fixture
def upgraded(after: ChangingProject, tmp_path: Path) -> ChangingProject:
    return after.copy(tmp_path)


NEW = (7, 3, Decimal("0.25"), ["x"])
CLEAN = {**dict.fromkeys(("a", "b", "late", "waits"), OLD), "new": NEW, "late too": NEW}


def test_only_added_fields_read_and_build_nothing_again(project: ChangingProject) -> None:
    files_before = files(project)
    project.change(*ADDED)
    with pytest.raises(DefinitionChangedError):
        project.engine()
    engine = project.engine(CHANGED)
    assert set(project.actions(engine).values()) == {"resume"}
    assert files(project) == files_before
    assert {states(project.root, path)[-1]["generation"] for path in ALL} == {0}


def zips(project: ChangingProject) -> list[list[int | None]]:
    """An added field in each list of the gold table."""
    rows = project.read("gold/per_minute")
    return sorted(([place.get("zip") for place in row["places"]] for row in rows), key=str)


def fold_late_rows(engine: Engine) -> None:
    engine.operate("late_replay", **replay_document("per_minute"))
    engine.catch_up()
    assert unequal(backfill(engine)) == []


def test_added_fields_are_null_in_what_was_read_before(after: ChangingProject) -> None:
    assert after.added("silver/clean") == CLEAN
    assert after.added("late/per_minute") == {"late": OLD, "late too": NEW}
    assert zips(after) == [[7, None, None], [None]]
    assert after.ids("rejected/clean") == ["bare", "dear"]
    assert after.ids("quarantine/raw") == ["bad"]
    after.check(after.engine())


READERS = [with_deltalake, with_duckdb, with_polars, pytest.param(with_spark, marks=in_full)]


@pytest.mark.parametrize("read", READERS)
def test_readers_see_rows_of_both_kinds(
    after: ChangingProject, tmp_path: Path, read: Callable[[Path, Path], list[Row]]
) -> None:
    for path in ("silver/clean", "late/per_minute"):
        rows = read(after.root / "readings" / path, tmp_path)
        found = {row["_event_id"]: row["address"].get("zip") for row in rows}
        assert found == {name: added[0] for name, added in after.added(path).items()}
        vats = {row["_event_id"]: row["items"][0]["vat"] for row in rows}
        assert vats == {name: added[2] for name, added in after.added(path).items()}
    address = {
        row["event_id"]: row["record"]["address"]
        for row in read(after.root / "readings/bronze/raw", tmp_path)
        if row["event_id"] in CLEAN
    }
    assert {name: (row["zip"], row["at"]["h"]) for name, row in address.items()} == {
        name: added[:2] for name, added in CLEAN.items()
    }


def test_a_rebuild_and_a_merge_give_the_same_rows(upgraded: ChangingProject) -> None:
    engine = upgraded.engine()
    fold_late_rows(engine)
    assert zips(upgraded) == [[7, None, None], [7], [None, None]]
    expected = upgraded.rows()
    merged = compacted(engine)
    assert {"bronze/raw", "silver/all", "silver/clean", "late/per_minute"} <= merged.keys()
    assert upgraded.rows() == expected
    tables = ("silver/all", "silver/clean")
    upgraded.engine(RebuildRequest(tables)).catch_up()
    assert states(upgraded.root, "silver/clean")[-1]["generation"] == 1
    assert upgraded.rows() == expected


def test_an_upgrade_that_is_killed_after_any_commit_goes_on(project: ChangingProject) -> None:
    """Each start is killed after one more table has the fields."""
    project.change(*ADDED)
    for _ in range(6):
        with failing("extend.table_done"):
            project.engine(CHANGED)
    engine = project.engine(CHANGED)
    assert set(project.actions(engine).values()) == {"resume"}
    assert {states(project.root, path)[-1]["generation"] for path in ALL} == {0}


def test_an_expression_over_an_added_field_is_computed_from_bronze(
    project: ChangingProject,
) -> None:
    """From old files, Spark then reads only the fields that they lack. It still sees which values
    are null and how long arrays are."""
    only_added = "{zip: address.zip, known: address is not null, vats: items.vat}"
    project.change(
        *ADDED,
        ("all: {from: raw}", f"all: {{from: raw, columns: {only_added}, drop: {NESTED}}}"),
        ("city: address.city", "city: coalesce(address.zip, -1)"),
    )
    after = load(project.declaration)
    layout = Layout.of(str(project.root), after.name)
    assert {plan.table: plan.action for plan in deployment_of(layout, after).tables} == {
        "bronze/raw": "extend",
        **dict.fromkeys(("silver/all", "silver/clean", "gold/per_minute"), "rebuild"),
    }
    project.run([full("new", 9)], engine=project.engine(CHANGED))
    rows = {row["_event_id"]: row for row in project.read("silver/all")}
    found = {name: (row["zip"], row["known"], row["vats"]) for name, row in rows.items()}
    assert found == {
        **dict.fromkeys(("a", "b", "late", "dear", "waits"), (None, True, [None, None])),
        "dear": (None, True, [None]),
        "bare": (None, False, None),
        "new": (7, True, [Decimal("0.25"), None]),
    }
    gold = sorted((row["city"], row["events"]) for row in project.read("gold/per_minute"))
    assert gold == [(-1, 1), (-1, 2), (7, 1)]
    project.check(project.engine())


def test_a_changed_expression_over_a_nested_field_is_as_from_the_start(
    project: ChangingProject,
) -> None:
    fresh = project.copy(project.root.parent / "fresh")
    shutil.rmtree(fresh.root)
    for each in (project, fresh):
        each.change(
            ("city: address.city", "city: upper(address.city)"),
            ("cast(sum + coalesce", "cast(sum + 2 * coalesce"),
        )
    project.engine(CHANGED).catch_up()
    engine = fresh.engine()
    engine.list_new()
    for end in range(1, engine.last_sequence + 1):
        engine.ingest(end)
        engine.catch_up()
    assert {row["city"] for row in project.read("gold/per_minute")} == {"OSLO"}
    assert project.rows() == fresh.rows()


def test_tables_go_back_to_before_an_upgrade_and_forward_again(upgraded: ChangingProject) -> None:
    """Bronze does not go back: it keeps the added fields of records that were read after the
    savepoint."""
    expected = upgraded.rows()
    engine = upgraded.engine()
    (savepoint,) = savepoints(engine.layout)
    assert isinstance(savepoint, Savepoint)
    engine.restore(savepoint)
    actions = upgraded.actions(engine)
    assert {path for path, action in actions.items() if action == "resume"} == {"bronze/raw"}
    assert set(actions.values()) == {"resume", "extend"}
    upgraded.engine(CHANGED).catch_up()
    assert upgraded.rows() == expected


def test_a_rolled_back_upgrade_leaves_the_fields_empty(upgraded: ChangingProject) -> None:
    engine = upgraded.engine()
    (savepoint,) = savepoints(engine.layout)
    assert isinstance(savepoint, Savepoint)
    new = upgraded.declaration.read_text()
    engine.restore(savepoint, reread=True)
    upgraded.change(*((after, before) for before, after in ADDED))
    engine = upgraded.engine().run_all()
    assert upgraded.added("silver/clean") == dict.fromkeys(CLEAN, OLD)
    upgraded.check(engine)
    fold_late_rows(engine)
    assert {zip_ for each in zips(upgraded) for zip_ in each} == {None}
    other = upgraded.declaration.with_name("other.yml")
    other.write_text(
        upgraded.declaration.read_text().replace("address, total, 3", "address, total, 1")
    )
    (table,) = unequal(backfill(engine, used=load(other)))
    assert [each.column for each in table.columns] == ["places"]
    compacted(engine)
    upgraded.declaration.write_text(new)
    engine = upgraded.run([full("newer", 9)], engine=upgraded.engine(CHANGED))
    assert upgraded.added("silver/clean") == {**dict.fromkeys(CLEAN, OLD), "newer": NEW}
    assert zips(upgraded) == [[7, None, None], [None, None], [None]]
    assert by_id(engine.layout, engine.pipeline).findings == ()


def test_a_field_that_was_rolled_back_cannot_come_back_as_another(
    upgraded: ChangingProject,
) -> None:
    """Files that were read again may not have the field, but the table's schema does."""
    engine = upgraded.engine()
    (savepoint,) = savepoints(engine.layout)
    assert isinstance(savepoint, Savepoint)
    engine.restore(savepoint, reread=True)
    upgraded.change(("zip: int", "zip: string"))
    assert upgraded.actions(engine)["bronze/raw"] == "reread"
