"""A backfill is published once, completely and at its place, and a restore takes it back."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.driver.task import RebuildRequest
from headgate.flow.operations.patch import CHANGE, GONE
from headgate.flow.publish.changes import changes
from headgate.history.backfill.folders import remove_ended_backfills
from headgate.history.backfill.report import publication_of
from headgate.history.backfill.running import BackfillOutcome
from headgate.history.savepoints.clone import clone_savepoint
from headgate.history.savepoints.holds import FOLDER
from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from headgate.lake.control.requests import waiting_requests
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.errors import DamagedFileError
from headgate.lake.tables.frames import TableRows
from headgate.lake.tables.table import Table
from tests.support.backfilled import backfill, publish, unequal
from tests.support.changing_project import ADDED, ChangingProject, full
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.failing import dying, failing
from tests.support.landing import Landing, split
from tests.support.prepared import Prepared
from tests.support.readings import GOLD_KEYS, declare
from tests.support.rounds import in_full
from tests.support.tables import Row, read

pytestmark = pytest.mark.spark

TABLES = ("sliding", "bands")
Keyed = Mapping[tuple[Any, ...], Row]


@pytest.fixture(scope="module")
def lived(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    """Three of four files are read; the windows were drained after the second."""
    landing = Landing(tmp_path_factory.mktemp("landing"))
    landing.write_all(split(readings(300, seed=10), 4))
    folder = tmp_path_factory.mktemp("lived")
    engine = Engine(spark, declare(folder, landing.folder, gold=TABLES), folder / "root")
    engine.list_new()
    for end in (1, 2, 3):
        engine.ingest(end)
        if end == 2:
            engine.operate("drain")
        engine.catch_up()
    return Prepared(engine)


def changed(engine: Engine) -> Pipeline:
    """Formulas and conditions that change some rows of both tables, add some and take some away."""
    text = engine.pipeline.text
    for old, new in (
        ("heaviest: max(weight)", "heaviest: min(weight)"),
        ("where: level >= 5", "where: level >= 7 or level < 0"),
        ("where: value > 0", "where: value > 2 and level is not null"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    file = engine.pipeline.file.with_name("changed.yml")
    file.write_text(text)
    return load(file)


def final(engine: Engine, table: str) -> Keyed:
    rows = read(engine.root, f"gold/{table}")
    keyed = {tuple(row[k] for k in GOLD_KEYS[table]): row for row in rows if row["final"]}
    assert len(keyed) == sum(row["final"] for row in rows), "no key is there twice"
    return keyed


def values(rows: Keyed) -> Keyed:
    status = ("revision", "updated_at")
    return {key: {k: v for k, v in row.items() if k not in status} for key, row in rows.items()}


def gold(engine: Engine, name: str) -> Table:
    return Table(engine.layout.storage, f"gold/{name}", pipeline=engine.pipeline.name)


def sound(engine: Engine) -> None:
    assert balance(engine.layout, engine.pipeline).differences == ()
    assert by_id(engine.layout, engine.pipeline).findings == ()


@pytest.fixture(scope="module")
def computed(
    lived: Prepared, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Prepared, BackfillOutcome]:
    """A backfill by the changed declaration, with each kind of change; its patches are stored."""
    engine = lived.copy(tmp_path_factory.mktemp("computed"))
    outcome = backfill(engine, used=changed(engine))
    tables = outcome.report.tables
    for each in (operator.attrgetter(kind) for kind in ("changed", "new", "gone")):
        assert sum(map(each, tables)) > 0
    assert all(table.differing and table.columns and table.rows.rows for table in tables)
    return Prepared(engine), outcome


@pytest.fixture
def engine(computed: tuple[Prepared, BackfillOutcome], tmp_path: Path) -> Engine:
    return computed[0].copy(tmp_path)


@pytest.fixture
def outcome(computed: tuple[Prepared, BackfillOutcome]) -> BackfillOutcome:
    return computed[1]


def test_it_changes_what_differs_and_is_taken_back_by_the_savepoint(
    engine: Engine, outcome: BackfillOutcome
) -> None:
    before = {name: final(engine, name) for name in TABLES}
    versions = {name: newest(gold(engine, name)) for name in TABLES}
    savepoint = engine.savepoint()
    request = publish(engine, outcome, savepoint.id)
    engine.take_in()
    assert waiting_requests(engine.layout) == ()
    sound(engine)
    published = {name: final(engine, name) for name in TABLES}
    for table in outcome.report.tables:
        name, was, now = table.table, before[table.table], published[table.table]
        same = {key for key in was.keys() & now.keys() if was[key] == now[key]}
        moved = (was.keys() & now.keys()) - same
        assert (len(same), len(moved)) == (table.equal, table.changed)
        assert (len(now.keys() - was.keys()), len(was.keys() - now.keys())) == (
            table.new,
            table.gone,
        )
        assert {now[key]["revision"] - was[key]["revision"] for key in moved} == {1}
        assert {now[key]["revision"] for key in now.keys() - was.keys()} <= {0}
        assert len({now[key]["updated_at"] for key in now.keys() - same}) == 1
        # It is one commit. Publications send its rows that are new or have changed.
        assert newest(gold(engine, name)) == versions[name] + 1
        (commit,) = changes(gold(engine, name), versions[name], versions[name] + 1)
        sent = TableRows(engine.spark, gold(engine, name)).of(commit.files).count()
        assert sent == table.changed + table.new
    assert unequal(backfill(engine, used=changed(engine))) == []
    again = backfill(engine)
    assert [each.earlier for each in again.report.tables] == [(outcome.report.id,)] * 2
    assert len(unequal(again)) == 2, "the tables are not what their own declaration gives"
    # The stream continues, and then the tables go back.
    engine.ingest()
    engine.catch_up()
    sound(engine)
    engine.restore(savepoint)
    engine.start().catch_up()
    sound(engine)
    assert engine.decisions().decided(request.id) is not None
    for name in TABLES:
        assert values(before[name]).items() <= values(final(engine, name)).items()
    assert unequal(backfill(engine)) == []


@in_full
def test_one_of_before_a_savepoint_stays_wherever_the_tables_were_meanwhile(
    engine: Engine, outcome: BackfillOutcome
) -> None:
    before = engine.savepoint()
    publish(engine, outcome)
    engine.take_in()
    wanted, after = {name: final(engine, name) for name in TABLES}, engine.savepoint()
    engine.restore(before)
    engine.start().catch_up()
    assert unequal(backfill(engine)) == []
    engine.restore(after)
    anew = RebuildRequest(tuple(f"gold/{name}" for name in TABLES))
    rebuilt = Engine(engine.spark, engine.pipeline, engine.root, now=engine.now, anew=anew)
    rebuilt.catch_up()
    for name in TABLES:
        assert values(final(rebuilt, name)) == values(wanted[name])
    sound(rebuilt)


def newest(table: Table) -> int:
    table.refresh()
    return table.version


@pytest.mark.parametrize("later", [True, pytest.param(False, marks=in_full)])
def test_a_rebuild_and_a_copy_repeat_it(
    engine: Engine, outcome: BackfillOutcome, tmp_path: Path, *, later: bool
) -> None:
    publish(engine, outcome)
    engine.take_in()
    if later:
        engine.ingest()
        engine.catch_up()
        engine.operate("late_replay", table="bands", **{"from": None, "to": None, "keys": {}})
        engine.catch_up()
    remove_ended_backfills(engine.layout, engine.pipeline)
    wanted = {name: final(engine, name) for name in TABLES}
    anew = RebuildRequest(tuple(f"gold/{name}" for name in TABLES))
    rebuilt = Engine(engine.spark, engine.pipeline, engine.root, now=engine.now, anew=anew)
    rebuilt.catch_up()
    assert {name: values(final(rebuilt, name)) for name in TABLES} == {
        name: values(rows) for name, rows in wanted.items()
    }
    sound(rebuilt)
    if later:
        return
    to = Layout.of(str(tmp_path / "copy"), engine.pipeline.name)
    clone_savepoint(engine.layout, rebuilt.savepoint(), to)
    copied = Engine(engine.spark, engine.pipeline, tmp_path / "copy", now=rebuilt.now, anew=anew)
    copied.catch_up()
    for name in TABLES:
        assert values(final(copied, name)) == values(wanted[name])


def rows_of(project: ChangingProject) -> list[dict[str, Any]]:
    """The rows of the gold table, without the times at which they were written."""
    found = [{**row, "updated_at": None} for row in project.read("gold/per_minute")]
    return sorted(found, key=lambda row: row["window_start"])


def test_a_rebuild_repeats_it_after_fields_were_added_inside_of_columns(
    spark: SparkSession, tmp_path: Path
) -> None:
    project = ChangingProject(tmp_path, spark)
    engine = project.run([full("a"), full("b", 9)])
    file = project.declaration.with_name("changed.yml")
    old, new = "items: sum(size(items))", "items: sum(size(items) + 1)"
    text = project.declaration.read_text()
    assert old in text
    file.write_text(text.replace(old, new))
    publish(engine, backfill(engine, used=load(file)))
    engine.take_in()
    added = {"city": "Oslo", "at": {"lat": 1.5, "lon": 2.5, "h": None}, "zip": None}
    published = rows_of(project)
    for each in published:
        each["places"] = [added] * len(each["places"])
    project.change(*ADDED)
    with failing("operation.extended"):
        project.engine(RebuildRequest(changed=True))
    project.engine(RebuildRequest(changed=True))
    engine = project.engine(RebuildRequest(("gold/per_minute",)))
    engine.catch_up()
    assert gold(engine, "per_minute").refresh().generation == 1, "the table was rebuilt"
    (row,) = (row for row in project.read("gold/per_minute") if row["final"])
    assert (row["items"], row["revision"]) == (3, 1)
    assert rows_of(project) == published


def test_a_patch_that_has_changed_is_not_read(engine: Engine, outcome: BackfillOutcome) -> None:
    publish(engine, outcome)
    before = {name: final(engine, name) for name in TABLES}
    path = outcome.patches["bands"].path
    engine.layout.storage.write(path, engine.layout.storage.read(path) + b"!")
    with pytest.raises(DamagedFileError, match="not what was written"):
        engine.take_in()
    assert final(engine, "bands") == before["bands"]


@pytest.mark.parametrize(
    "name",
    ["late_replay", *(pytest.param(each, marks=in_full) for each in ("drain", "backfill"))],
)
def test_it_is_void_if_another_operation_came_first(
    engine: Engine, outcome: BackfillOutcome, name: str
) -> None:
    if name == "backfill":
        only = replace(outcome, patches={"bands": outcome.patches["bands"]})
        publish(engine, only)
    elif name == "late_replay":
        engine.operate(name, table="bands", **{"from": None, "to": None, "keys": {}})
    else:
        engine.operate(name)
    engine.take_in()
    before = {table: final(engine, table) for table in TABLES}
    publish(engine, outcome)
    engine.take_in()
    operation = engine.decisions().operations[-1]
    void = {*publication_of(engine.layout, engine.pipeline.name, operation).void}
    assert void == ({"bands", "sliding"} if name == "drain" else {"bands"})
    assert {t for t in TABLES if final(engine, t) == before[t]} == void
    sound(engine)


@in_full
def test_a_request_from_before_a_restore_is_dropped(
    engine: Engine, outcome: BackfillOutcome
) -> None:
    savepoint = engine.savepoint()
    request = publish(engine, outcome)
    engine.restore(savepoint)
    engine.start().take_in()
    assert waiting_requests(engine.layout) == ()
    assert engine.decisions().decided(request.id) is None
    assert unequal(backfill(engine)) == []


PLACES = ("operation.taken_in", "operation.staged", "operation.table_done", "operation.intended")


def patched(engine: Engine, outcome: BackfillOutcome, table: str) -> Keyed:
    """The final rows of gold, with the patch applied."""
    file = engine.layout.storage.uri(outcome.patches[table].path)
    rows = {tuple(row[k] for k in GOLD_KEYS[table]): row for row in pq.read_table(file).to_pylist()}
    kept = {key: row for key, row in rows.items() if row.pop(CHANGE) != GONE}
    others = {key: row for key, row in final(engine, table).items() if key not in rows}
    return values(kept | others)


def test_it_is_carried_out_once_wherever_driver_and_verb_die(
    engine: Engine, outcome: BackfillOutcome
) -> None:
    wanted = {name: patched(engine, outcome, name) for name in TABLES}
    with dying("backfill.asked"):
        publish(engine, outcome)
    remove_ended_backfills(engine.layout, engine.pipeline)
    assert outcome.report.id in engine.layout.storage.folders(FOLDER), "a request waits for it"
    for place in PLACES:
        with dying(place, certainly=False):
            engine.start().take_in()
    engine.start().take_in()
    sound(engine)
    assert {name: values(final(engine, name)) for name in TABLES} == wanted
    assert {row["revision"] for name in TABLES for row in final(engine, name).values()} == {0, 1}
    assert outcome.report.id in engine.layout.storage.folders(FOLDER)
