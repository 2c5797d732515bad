"""All gold operators keep one contract: however a history is divided into batches, steps, drivers
and jobs, the tables are those of their definitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from headgate.history.recompute.computing import recompute
from headgate.history.recompute.plan import WHOLE
from headgate.history.recompute.report import Recomputation
from headgate.insight.final_periods.finality import final_up_to
from headgate.insight.ledger import balance
from headgate.insight.ledger.by_id import by_id
from tests.support.contract.cases import CASES
from tests.support.contract.history import FILES, History, Input, declare
from tests.support.contract.layouts import (
    BehindInSteps,
    FileByFile,
    Jobs,
    JobsBehind,
    Layout,
    NewDrivers,
    at_passages,
    by_chance,
    deaths,
)
from tests.support.contract.model import Model, TableModel
from tests.support.drivers import run
from tests.support.engine import Engine
from tests.support.prepared import Prepared
from tests.support.rounds import ROUNDS, in_full
from tests.support.tables import Row, read
from tests.support.toys import toys

pytestmark = pytest.mark.spark

LONG = (in_full, pytest.mark.long)
SEED = 21
NAMES = tuple(case.table for case in CASES)
Lived = tuple[History, Mapping[str, list[Row]]]
"""A history that has ended, and the rows of all its tables."""


@pytest.fixture(autouse=True, scope="module")
def _installed() -> Iterator[None]:
    with toys():
        yield


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Input:
    return Input.of(tmp_path_factory.mktemp("input"), SEED)


def tables_of(root: Path) -> Mapping[str, list[Row]]:
    """The rows of all gold and late tables, without what depends on the moment."""
    late = [f"late/{case.table}" for case in CASES if case.reads is None]
    found = {path: read(root, path, "contract") for path in (*map("gold/{}".format, NAMES), *late)}
    for rows in found.values():
        for row in rows:
            row.pop("updated_at", None)
        rows.sort(key=str)
    for case in CASES:
        if case.reads is not None:
            # Rows that come after a drain correct a rollup, and batches decide how often.
            for row in found[f"gold/{case.table}"]:
                row["revision"] = min(row["revision"], 1)
    return found


def check(root: Path, model: Model) -> None:
    """Every table is that of its definition."""
    tables = tables_of(root)
    ids = {row["_offset"]: row["_event_id"] for row in read(root, "silver/clean", "contract")}
    for case in CASES:
        defined, gold = model.tables[case.table], tables[f"gold/{case.table}"]
        found = {}
        for row in gold:
            if "window_offset" in row:
                row["window_offset"] = ids[row["window_offset"]]
            key = (*(row[name] for name in case.columns[:1]), row.get("site"))
            found[key] = {name: row[name] for name in row if name != "revision"}
        assert len(found) == len(gold)
        assert found == defined.rows(model.watermarks), case.table
        if case.reads is None:
            check_late(tables[f"late/{case.table}"], defined)


def check_late(rows: list[Row], defined: TableModel) -> None:
    found = {
        (row["_event_id"], *(row[name] for name in defined.case.columns)): (
            row["reason"],
            row["late_seconds"],
            row["replayed"] is not None,
        )
        for row in rows
    }
    assert len(found) == len(rows)
    assert found == defined.late_rows(), defined.case.table


def check_accounts(history: History) -> None:
    engine = history.engine
    assert balance(engine.layout, engine.pipeline).differences == ()
    assert by_id(engine.layout, engine.pipeline).findings == ()
    for each in recomputed(engine, engine.pipeline.gold).tables:
        rows = read(engine.root, f"gold/{each.table}", "contract")
        assert (each.differing, each.equal + sum(each.corrected.values())) == (0, len(rows))


def recomputed(engine: Engine, tables: Iterable[str]) -> Recomputation:
    wanted = dict.fromkeys(tables, WHOLE)
    return recompute(engine.spark, engine.layout, engine.pipeline, wanted, engine.clock())


def live(spark: SparkSession, folder: Path, given: Input, layout: Layout) -> History:
    """The history: each operation is at one place of the input, whatever the layout is."""
    history = History(spark, folder, given, layout)
    history.deliver(2)
    history.restored(1)
    history.deliver(1)
    history.replay()
    history.load()
    check(history.engine.root, history.model)
    history.deliver(1)
    history.correct()
    history.deliver(2)
    history.end()
    check(history.engine.root, history.model)
    check_accounts(history)
    return history


@pytest.fixture(scope="module")
def lived(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, given: Input) -> Lived:
    """In few batches, and with one driver."""
    history = live(spark, tmp_path_factory.mktemp("lived"), given, Layout("in few batches"))
    return history, tables_of(history.engine.root)


def test_the_history_has_every_kind_of_row(lived: Lived) -> None:
    _, tables = lived
    for case in CASES:
        if not case.is_corrected:
            continue
        rows = tables[f"gold/{case.table}"]
        kinds = {(row["final"], row["revision"] > 0) for row in rows}
        assert kinds >= {(True, True), (True, False), (False, False)}, case.table
        if case.reads is None:
            late = {(r["reason"], r["replayed"] is None) for r in tables[f"late/{case.table}"]}
            assert late >= {("late", True), ("late", False), ("closed", False)}, case.table


LAYOUTS = (
    *(JobsBehind("jobs that are behind"), BehindInSteps("in steps"), FileByFile("file by file")),
    *(NewDrivers("new drivers"), Jobs("a job per layer")),
)


@in_full
@pytest.mark.long
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: layout.name)
def test_every_layout_gives_the_same_tables(
    spark: SparkSession,
    tmp_path: Path,
    given: Input,
    lived: Lived,
    layout: Layout,
) -> None:
    history = live(spark, tmp_path, given, layout)
    assert tables_of(history.engine.root) == lived[1]


PLACES = {
    *(
        f"{table}.{place}"
        for table in ("silver", "late", "gold")
        for place in ("staged", "committed")
    ),
    *("operation.intended", "operation.staged", "operation.table_done"),
    *("load.ingested", "load.replay_intended"),
}


@pytest.mark.parametrize("seed", [None, *(pytest.param(n, marks=LONG) for n in range(ROUNDS))])
def test_a_driver_may_die_anywhere(
    spark: SparkSession,
    tmp_path: Path,
    given: Input,
    lived: Lived,
    seed: int | None,
) -> None:
    dies = at_passages((1, 12)) if seed is None else by_chance(seed, 0.1)
    layout = deaths("deaths", dies)
    history = live(spark, tmp_path, given, layout)
    assert tables_of(history.engine.root) == lived[1]
    assert layout.deaths.keys() >= PLACES


def test_without_operations(spark: SparkSession, tmp_path: Path) -> None:
    """All input is one batch."""
    given = Input.of(tmp_path, SEED + 1)
    history = History(spark, tmp_path, given, Layout("all at once"))
    history.deliver(FILES)
    check(history.engine.root, history.model)
    check_accounts(history)


@in_full
@pytest.mark.long
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_other_input(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    """Batches and deaths by chance."""
    given = Input.of(tmp_path, 100 + seed)
    live(spark, tmp_path, given, deaths("deaths", by_chance(seed, 0.05)))


@in_full
@pytest.mark.long
def test_processes_are_killed(tmp_path: Path, given: Input) -> None:
    """At each place once, one file a batch, and a drain at the end."""
    pipeline, root, kills = declare(tmp_path, given), tmp_path / "root", tmp_path / "kills"
    kills.mkdir()
    for place in PLACES:
        (kills / place).touch()
    while (ended := run(pipeline.file, root, "--drain", failpoint=f"@{kills}")).was_killed:
        pass
    assert ended.code == 0, ended.output
    assert not {place.name for place in kills.iterdir() if not place.name.startswith("load.")}
    model = Model()
    for events in given.files:
        model.deliver(events)
    model.drain()
    check(root, model)


def test_operations_leave_a_table_without_ranges_alone(lived: Lived) -> None:
    history, tables = lived
    layout, pipeline = history.engine.layout, history.engine.pipeline
    for case in CASES:
        if not case.has_ranges:
            assert final_up_to(layout, pipeline, case.table) is None
            assert {row["revision"] for row in tables[f"gold/{case.table}"]} == {0}
            assert tables[f"late/{case.table}"] == []


def test_a_wrong_value_is_named(tmp_path: Path, lived: Lived) -> None:
    """By ``ledger --recompute``, whatever the operator is."""
    history, tables = lived
    engine, changed = Prepared(history.engine).copy(tmp_path), dict[str, int]()
    for case in CASES:
        if case.reads is None:
            most = max(row["events"] for row in tables[f"gold/{case.table}"])
            gold = DeltaTable(str(engine.root / "contract/gold" / case.table))
            found = gold.update({"total": "coalesce(total, 0) + 1"}, predicate=f"events = {most}")
            changed[case.table] = found["num_updated_rows"]
    for each in recomputed(engine, changed).tables:
        assert (each.changed, each.missing, each.extra) == (changed[each.table], 0, 0)
        assert {line.column for line in each.rows.lines} == {"total"}
