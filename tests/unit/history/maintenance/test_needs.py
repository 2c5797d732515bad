"""Compaction and vacuum keep what savepoints, stages, rebuilds and resets need."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from headgate.history.maintenance.retention_context import NotLevelError
from headgate.history.savepoints.clone import clone_savepoint
from headgate.history.savepoints.errors import ResetOpenError, SavepointError
from headgate.history.savepoints.resets import Resets, ResetTarget
from headgate.history.savepoints.restore import restore_savepoint
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import delete_savepoint
from headgate.history.savepoints.verify import verify_savepoint
from headgate.insight.ledger import balance
from headgate.insight.ledger.by_id import by_id
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.arrow import stage_arrow
from headgate.lake.tables.decisions import DECISIONS
from headgate.lake.tables.history import batches
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.log import list_log
from tests.support.decisions import append, control_of, reset_to
from tests.support.failing import passing
from tests.unit.history.maintenance.conftest import (
    BUILT,
    TOMORROW,
    Before,
    Fill,
    all_rows,
    compacted,
    maintain,
    table,
    vacuumed,
)
from tests.unit.history.savepoints.conftest import add_batch, begin, here, take
from tests.unit.insight.ledger.conftest import NOON, Lake, bronze, silver

pytestmark = pytest.mark.usefixtures("short_logs")


def saved_and_compacted(fill: Fill, last: int) -> tuple[Lake, Savepoint, Before]:
    """A lake with a savepoint after batch 3 and the rows of then. It has later batches up to
    ``last``, and its files were merged since."""
    lake = fill(3)
    then = all_rows(lake.layout)
    savepoint = take(lake)
    for n in range(4, last + 1):
        add_batch(lake, n)
    compacted(lake)
    return lake, savepoint, then


@pytest.mark.long
def test_a_savepoint_can_be_restored_after_all_of_it(fill: Fill) -> None:
    lake, savepoint, then = saved_and_compacted(fill, 8)
    done = vacuumed(lake)
    assert done["gold/per_minute"].kept["savepoints"].files == 3
    assert done["silver/good"].kept["savepoints"].files == 3
    assert done["silver/good"].kept["batches"].files == 5
    assert done["gold/per_minute"].removed.files == 5
    maintain(lake)
    assert verify_savepoint(lake.layout, "tiny", savepoint, read=True) == ()
    restore_savepoint(lake.layout, lake.pipeline, savepoint, 99, NOON)
    now = all_rows(lake.layout)
    assert {path: now[path] for path in BUILT} == {path: then[path] for path in BUILT}
    # The stages also find every later batch, in the files that were merged since.
    upstream = table(lake, "bronze/events")
    found = batches(upstream, 3, 8)
    assert [c.state.n for c in found] == [4, 5, 6, 7, 8]
    assert all(upstream.storage.exists(f.path) for c in found for f in c.files)


@pytest.mark.long
def test_a_copy_of_a_savepoint_can_be_made_after_all_of_it(
    maintained: tuple[Lake, Before], tmp_path: Path
) -> None:
    lake, before = maintained
    savepoint = take(lake)
    there = Layout.of(str(tmp_path / "copy"), "tiny")
    clone_savepoint(lake.layout, savepoint, there)
    assert all_rows(there) == before
    assert balance(there, lake.pipeline).balanced


def test_a_copy_keeps_what_it_reads(fill: Fill, tmp_path: Path) -> None:
    """The savepoint is deleted while the copy runs, and its files would go with it."""
    lake, savepoint, then = saved_and_compacted(fill, 6)
    done: list[str] = []

    def vacuum(place: str) -> None:
        if place == "clone.table_done" and not done:
            done.append(place)
            delete_savepoint(lake.layout, savepoint)
            vacuumed(lake)

    there = Layout.of(str(tmp_path / "copy"), "tiny")
    with passing(vacuum):
        clone_savepoint(lake.layout, savepoint, there)
    assert done
    assert all_rows(there) == then
    assert vacuumed(lake)["silver/good"].removed.files == 6


def test_a_savepoint_that_is_deleted_before_its_copy_begins_is_not_copied(
    fill: Fill, tmp_path: Path
) -> None:
    lake = fill(3)
    savepoint = take(lake)
    delete_savepoint(lake.layout, savepoint)
    with pytest.raises(SavepointError, match="has been deleted meanwhile"):
        clone_savepoint(lake.layout, savepoint, Layout.of(str(tmp_path / "copy"), "tiny"))
    assert not any((tmp_path / "copy").rglob("*.parquet"))


@pytest.mark.slow
def test_what_only_a_savepoint_needed_goes_with_it(fill: Fill) -> None:
    lake, savepoint, _ = saved_and_compacted(fill, 6)
    vacuumed(lake)
    delete_savepoint(lake.layout, savepoint)
    assert vacuumed(lake)["silver/good"].removed.files == 6


def test_files_that_a_restore_has_brought_back_are_kept_for_readers(fill: Fill) -> None:
    """They are old, and compaction has removed them from the table again since."""
    lake, savepoint, _ = saved_and_compacted(fill, 6)
    began, old = datetime.now(UTC), live_at(lake, savepoint)
    for path in old:
        os.utime(path, (0, 0))
    restore_savepoint(lake.layout, lake.pipeline, savepoint, 99, began + timedelta(hours=1))
    delete_savepoint(lake.layout, savepoint)
    compacted(lake, "silver/good")
    assert not old & live_at(lake)
    vacuumed(lake, keep_for=timedelta(hours=1), now=began + timedelta(hours=1, minutes=30))
    assert all(path.exists() for path in old)
    vacuumed(lake, keep_for=timedelta(hours=1), now=began + timedelta(hours=3))
    assert not any(path.exists() for path in old)


def live_at(lake: Lake, savepoint: Savepoint | None = None) -> set[Path]:
    of = table(lake, "silver/good")
    version = None if savepoint is None else savepoint.tables[of.name].version
    files = live_files(DeltaTable(of.storage.uri(), version=version))
    return {Path(of.storage.uri(file.path)) for file in files}


def test_a_savepoint_that_cannot_be_read_stops_it(fill: Fill) -> None:
    lake = fill(3)
    savepoint = take(lake)
    compacted(lake)
    lake.layout.storage.write(Layout.savepoint(savepoint.id), b"{}")
    with pytest.raises(NotLevelError, match="what it needs is unknown") as error:
        vacuumed(lake)
    assert f"headgate savepoint delete PIPELINE {savepoint.id}" in error.value.remedy


@pytest.mark.long
def test_a_stage_that_lags_finds_its_batches(fill: Fill) -> None:
    """Gold is at 3, silver at 6, bronze at 9: compaction stops at 3, and so does vacuum."""
    lake = fill(3)
    for n in range(4, 10):
        lake.commit("bronze/events", n, [bronze(3 * n)], {"read": 1, "duplicate": 0})
        if n <= 6:
            counts = {"silver": 1, "filtered": 0, "quarantined": 0, "duplicate": 0}
            lake.commit("silver/good", n, [silver(3 * n)], counts)
    before = all_rows(lake.layout)
    wanted = {path: names(lake, path, 3) for path in ("bronze/events", "silver/good")}
    done = compacted(lake)
    assert done["bronze/events"].merged.files == done["silver/good"].merged.files == 3
    assert [name for path in wanted for name in names(lake, path, 3)] == [
        name for path in wanted for name in wanted[path]
    ]
    first = vacuumed(lake)
    # The ledger compares gold with bronze and silver as of batch 3.
    assert first["bronze/events"].kept["ledger"].files == 3
    assert first["bronze/events"].removed.files == 0
    maintain(lake)
    for path, files in wanted.items():
        assert names(lake, path, 3) == files
        assert all(map(table(lake, path).storage.exists, files))
    assert all_rows(lake.layout) == before
    assert by_id(lake.layout, lake.pipeline).holds


def names(lake: Lake, path: str, after: int) -> list[str]:
    of = table(lake, path)
    return [f.path for c in batches(of, after, of.refresh().n) for f in c.files]


@pytest.mark.long
def test_a_table_that_is_built_anew_reads_what_is_left(maintained: tuple[Lake, Before]) -> None:
    lake, before = maintained
    assert list_log(lake.layout.storage.at("silver/good")).oldest > 10
    control, gold = control_of(lake.layout.storage, "tiny", 99), table(lake, "gold/per_minute")
    gold.fence(99)
    reset_to(control, {"gold/per_minute": ResetTarget()}, NOON)
    Resets(control).carry_out([gold], NOON)
    upstream = table(lake, "silver/good")
    found = batches(upstream, 0, 12)
    assert (found[0].state.from_n, found[-1].state.n) == (0, 12)
    files = [f for c in found for f in c.files]
    assert sum(f.rows for f in files) == len(before["silver/good"])
    # Until the table has caught up, none of these files is merged or removed.
    compacted(lake)
    vacuumed(lake)
    assert all(upstream.storage.exists(f.path) for f in files)


@pytest.mark.slow
def test_a_rebuild_keeps_its_files_and_the_batches_that_it_has_to_read(fill: Fill) -> None:
    """The rebuild is at batch 2: no files are merged across it, and its own files are kept."""
    lake = fill(6)
    rebuild = begin(lake, ("late/per_minute", "gold/per_minute"))
    rebuilt = rebuild.table(lake.layout, "tiny", "gold/per_minute")
    rows_ = pa.Table.from_pylist([{"events": 1, "time": NOON}], lake._schema("gold/per_minute"))
    state = rebuilt.refresh().advanced_to(2, NOON).counting({"final": 1})
    (file,) = stage_arrow(rebuilt, state, rows_, time_column="time")
    rebuilt.commit(state, [replace(file, partition={"final": "true"})])
    compacted(lake)
    live = live_files(table(lake, "silver/good").handle)
    assert not any(each.is_across(2) for each in live)
    report = vacuumed(lake, now=datetime.now(UTC) + TOMORROW)
    assert rebuilt.storage.exists(file.path)
    assert report["gold/per_minute"].kept["rebuilt"].files == 1
    assert batches(table(lake, "silver/good"), 2, 6)
    reset_to(control_of(lake.layout.storage, "tiny"), {}, NOON)  # the rebuild is void
    vacuumed(lake, now=datetime.now(UTC) + TOMORROW)
    assert not rebuilt.storage.exists(file.path)


def test_nothing_is_touched_while_a_reset_is_open(fill: Fill) -> None:
    lake = fill(4)
    targets = {"silver/good": ResetTarget()}
    reset_to(lake.control, targets, NOON, why="restore of savepoint s1")
    for act in (compacted, vacuumed):
        with pytest.raises(ResetOpenError, match=r"restore of savepoint s1\): silver/good") as e:
            act(lake)
        assert "headgate run PIPELINE --once" in e.value.remedy


def test_decisions_stay_when_the_log_that_had_them_goes(fill: Fill) -> None:
    lake = fill(4)
    for _ in range(12):
        append(lake.control, "drain", {}, here(lake), NOON)
    reset_to(lake.control, {"gold/per_minute": ResetTarget()}, NOON)
    gold = table(lake, "gold/per_minute")
    Resets(lake.control).carry_out([gold], NOON)
    decided = lake.control.known
    reader = control_of(lake.layout.storage, "tiny")
    maintain(lake)
    assert list_log(lake.layout.storage.at(DECISIONS)).oldest > 12
    assert len(live_files(table(lake, DECISIONS).handle)) == 1
    for each in (reader, control_of(lake.layout.storage, "tiny")):
        assert each.refresh() == decided
