"""``ledger --recompute`` compares gold with its definition, and names every row that differs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.history.backfill.selection import EventTimeRange
from headgate.history.recompute.computing import recompute
from headgate.history.recompute.plan import WHOLE, plan_recompute
from headgate.history.recompute.report import Recomputation, RecomputedTable
from headgate.history.savepoints.store import settled_snapshot
from headgate.lake.tables.errors import DamagedFileError, LogGapError
from headgate.lake.tables.frames import micros
from headgate.lake.tables.live_files import live_files, live_paths
from headgate.lake.tables.table import Table
from tests.oracle import derive
from tests.support.backfilled import backfill, publish
from tests.support.engine import Engine
from tests.support.events import readings
from tests.support.landing import Landing, split
from tests.support.prepared import Prepared
from tests.support.readings import GOLD, NOON, declare, rules
from tests.support.tables import differences, read

pytestmark = pytest.mark.spark

EVERYTHING: Mapping[str, Any] = {"from": None, "to": None, "keys": {}}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def landing(tmp_path_factory: pytest.TempPathFactory) -> Landing:
    landing = Landing(tmp_path_factory.mktemp("landing"))
    landing.write_all(split(readings(400, seed=10), 4))
    return landing


@pytest.fixture(scope="module")
def lived(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, landing: Landing
) -> Prepared:
    """Each file is a batch. Some results are final and some are open, and late rows wait."""
    folder = tmp_path_factory.mktemp("lived")
    engine = Engine(spark, declare(folder, landing.folder, gold=GOLD), folder / "root")
    engine.list_new()
    for end in (1, 2, 3, 4):
        engine.ingest(end)
        engine.catch_up()
    return Prepared(engine)


def found(engine: Engine, **ranges: EventTimeRange) -> Recomputation:
    wanted = ranges or dict.fromkeys(engine.pipeline.gold, WHOLE)
    return recompute(engine.spark, engine.layout, engine.pipeline, wanted, engine.clock())


def of(engine: Engine, table: str) -> RecomputedTable:
    (only,) = found(engine, **{table: WHOLE}).tables
    return only


def all_equal(engine: Engine) -> None:
    result = found(engine)
    assert result.holds
    for table in result.tables:
        rows = read(engine.root, f"gold/{table.table}")
        assert (table.equal, table.differing, table.corrected) == (len(rows), 0, {})
        assert table.equal


def test_gold_has_the_rows_of_its_definition(
    lived: Prepared, tmp_path: Path, landing: Landing
) -> None:
    engine = lived.copy(tmp_path)
    expected = derive(landing.records(), rules(gold=GOLD))
    assert differences(engine.root, expected) == {}
    assert {t.table: t.equal for t in found(engine).tables} == {
        name: len(rows) for name, rows in expected.gold.items()
    }
    assert all(expected.late.values())
    all_equal(engine)
    engine.operate("late_replay", table="bands", **{**EVERYTHING, "keys": {"band": "high"}})
    engine.drain()
    all_equal(engine)
    late = [row["replayed"] for row in read(engine.root, "late/bands")]
    assert None in late, "some late rows are left out, and others are not"
    assert 1 in late


def change(engine: Engine, table: str, where: str, **values: str) -> None:
    """Change committed rows, as another writer does."""
    path = engine.root / engine.pipeline.name / "gold" / table
    assert DeltaTable(str(path)).update(values, predicate=where)["num_updated_rows"] == 1


def test_a_changed_value_a_missing_row_and_an_extra_row_are_named(
    lived: Prepared, tmp_path: Path
) -> None:
    engine = lived.copy(tmp_path)
    finals = [row for row in read(engine.root, "gold/bands") if row["final"]]
    one, gone, more = sorted(finals, key=lambda row: (row["window_start"], str(row)))[:3]
    path = str(engine.root / "readings/gold/bands")
    change(engine, "bands", is_row(one), events="events + 1")
    assert DeltaTable(path).delete(is_row(gone))["num_deleted_rows"] == 1
    other = DeltaTable(path).to_pyarrow_table()
    copy = pa.Table.from_pylist([{**more, "tenth": 77}], pa.schema(other.schema))
    assert copy.num_rows == 1
    append(path, copy)
    wrong = of(engine, "bands")
    assert (wrong.changed, wrong.missing, wrong.extra) == (1, 1, 1)
    assert wrong.equal == len(read(engine.root, "gold/bands")) - 2
    by_change = {row.change: row for row in wrong.rows.rows}
    assert by_change.keys() == {"changed", "new", "gone"}
    before, after = by_change["changed"].before, by_change["changed"].after
    assert before is not None
    assert after is not None
    (line,) = (line for line in wrong.rows.lines if line.row.change == "changed")
    assert line.column == "events"
    assert (before["events"], after["events"]) == (str(one["events"] + 1), str(one["events"]))
    assert after["band"] == one["band"]
    assert not found(engine).holds
    assert of(engine, "sliding").differing == 0
    said = {row["change"] for row in wrong.document()["rows"]["rows"]}
    assert said == {"changed", "missing", "extra"}


def append(path: str, rows: pa.Table) -> None:
    from deltalake import write_deltalake

    write_deltalake(path, rows, mode="append")


def is_row(row: Mapping[str, Any]) -> str:
    """The condition that selects one row of ``bands``, in delta-rs's SQL."""
    tenth = "tenth IS NULL" if row["tenth"] is None else f"tenth = {row['tenth']}"
    begin = f"window_start = arrow_cast('{row['window_start'].isoformat()}', {UTC_MICROS})"
    return f"band = '{row['band']}' AND {tenth} AND {begin}"


UTC_MICROS = "'Timestamp(Microsecond, Some(\"UTC\"))'"


def test_a_wrong_open_row_and_a_row_that_is_final_too_early_are_found(
    lived: Prepared, tmp_path: Path
) -> None:
    engine = lived.copy(tmp_path)
    (row, *_) = (row for row in read(engine.root, "gold/bands") if not row["final"])
    change(engine, "bands", is_row(row), events="events + 1", final="true")
    wrong = of(engine, "bands")
    assert (wrong.changed, wrong.missing, wrong.extra) == (1, 0, 0)
    assert {line.column for line in wrong.rows.lines} == {"events", "final"}


def test_only_results_inside_of_the_range_are_compared(lived: Prepared, tmp_path: Path) -> None:
    engine = lived.copy(tmp_path)
    rows = read(engine.root, "gold/sliding")
    begins = sorted({row["window_start"] for row in rows})
    first, last = begins[len(begins) // 3], begins[2 * len(begins) // 3]
    span = EventTimeRange(micros(first - EPOCH), micros(last - EPOCH))
    inside = [r for r in rows if r["window_start"] >= first and r["window_end"] <= last]
    assert 0 < len(inside) < len(rows)
    (table,) = found(engine, sliding=span).tables
    assert (table.equal, table.differing) == (len(inside), 0)
    at = settled_snapshot(engine.layout, engine.pipeline)
    (target,) = plan_recompute(at, engine.pipeline, {"sliding": span})
    ((name, files),) = target.inputs.files.items()
    assert len(files) < len(live_files(target.inputs.upstream[name].handle))
    later = EventTimeRange(micros(NOON - EPOCH) + micros(timedelta(days=300)))
    (empty,) = found(engine, sliding=later).tables
    assert empty.is_empty


def test_what_a_published_backfill_has_corrected_is_not_an_error(
    lived: Prepared, tmp_path: Path
) -> None:
    engine = lived.copy(tmp_path)
    text = engine.pipeline.text
    file = engine.pipeline.file.with_name("changed.yml")
    assert "where: value > 0" in text
    file.write_text(
        text.replace("where: value > 0", "where: value > 2 and level is not null").replace(
            "heaviest: max(weight)", "heaviest: min(weight)"
        )
    )
    outcome = backfill(engine, tables=["bands"], used=load(file))
    (report,) = outcome.report.tables
    assert report.changed
    assert report.gone
    publish(engine, outcome)
    engine.take_in()
    table = of(engine, "bands")
    assert table.corrected == {outcome.report.id: report.differing}
    assert (table.differing, table.equal > 0) == (0, True)
    # A row that has neither the values of the backfill nor those of the definition is wrong.
    rows = [row for row in read(engine.root, "gold/bands") if row["revision"] == 1]
    change(engine, "bands", is_row(rows[0]), events="events + 7")
    table = of(engine, "bands")
    assert (table.corrected, table.changed) == ({outcome.report.id: report.differing - 1}, 1)
    # The own declaration takes the correction back.
    publish(engine, backfill(engine, tables=["bands"]))
    engine.take_in()
    assert (of(engine, "bands").corrected, of(engine, "bands").differing) == ({}, 0)


def test_it_needs_the_files_that_the_table_was_made_from(lived: Prepared, tmp_path: Path) -> None:
    engine = lived.copy(tmp_path)
    late = Table(engine.layout.storage, "late/bands", pipeline="readings")
    (file, *_) = live_files(late.handle)
    late.storage.remove(file.path)
    with pytest.raises(DamagedFileError, match="late/bands.*is missing") as error:
        of(engine, "bands")
    assert "repair" in error.value.remedy


def test_a_table_behind_silver_is_compared_as_of_its_own_batch(
    lived: Prepared, tmp_path: Path, landing: Landing
) -> None:
    later = Landing(tmp_path / "landing")
    later.write_all(split(readings(400, seed=10), 4))
    engine = Engine(
        lived.engine.spark, declare(tmp_path, later.folder, gold=("bands",)), tmp_path / "root"
    )
    engine.list_new()
    for end in (1, 2):
        engine.ingest(end)
        engine.catch_up()
    for end in (3, 4):
        engine.ingest(end)
    engine.start(("silver",)).runtime.catch_up(engine.clock())
    silver = Table(engine.layout.storage, "silver/clean", pipeline="readings")
    assert silver.refresh().n == 4
    all_equal(engine)
    # Another tool merges the files across the table's batch, and a vacuum removes the old ones.
    DeltaTable(str(engine.root / "readings/silver/clean")).optimize.compact()
    all_equal(engine)
    live = live_paths(DeltaTable(str(engine.root / "readings/silver/clean")))
    for stat in [*silver.storage.list("data", recursive=True)]:
        if stat.path not in live:
            silver.storage.remove(stat.path)
    with pytest.raises(LogGapError, match=r"silver.clean: another tool has rewritten") as error:
        found(engine)
    assert "--full-refresh silver.clean" in error.value.remedy


DECLARATION = """
pipeline: readings
sources:
  raw:
    files: {{path: "{landing}", format: json, order: name, settle: 0 s}}
    record:
      event_id: [id]
      event_time: {{column: at}}
      duplicates: {{within: 10 minutes}}
      schema: {{id: string, site: string, level: int, at: timestamp}}
silver: {{clean: {{from: raw}}}}
gold:
  results:
    from: clean
    running: true
    measures: {{events: count(*), total: sum(level), newest: last(level)}}
"""


def test_a_table_without_keys_has_one_row(
    spark: SparkSession, tmp_path: Path, landing: Landing
) -> None:
    file = tmp_path / "readings.yml"
    file.write_text(DECLARATION.format(landing=landing.folder))
    engine = Engine(spark, load(file), tmp_path / "root").run_all()
    all_equal(engine)
    DeltaTable(str(engine.root / "readings/gold/results")).update({"events": "events + 1"})
    table = of(engine, "results")
    assert (table.equal, table.changed, table.missing, table.extra) == (0, 1, 0, 0)
