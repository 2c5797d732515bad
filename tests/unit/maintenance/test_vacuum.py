"""Compaction and vacuum keep everything that is needed, and delete the rest."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from headgate.ledger import balance
from headgate.ledger.by_id import by_id
from headgate.maintenance.retention_context import NotLevelError, read_context
from headgate.maintenance.vacuum import list_files, plan
from headgate.maintenance.work import compact, vacuum_tables
from headgate.savepoints.clone import clone
from headgate.savepoints.errors import ResetOpenError
from headgate.savepoints.rebuilds import DOCUMENT
from headgate.savepoints.resets import Resets, Target, intend
from headgate.savepoints.restore import restore
from headgate.savepoints.savepoint import Savepoint
from headgate.savepoints.store import delete
from headgate.savepoints.verify import verify
from headgate.storage.files import Storage
from headgate.storage.layout import Layout
from headgate.tables.arrow import stage_arrow
from headgate.tables.errors import FencedError, LogGapError
from headgate.tables.history import batches
from headgate.tables.live_files import live_files
from headgate.tables.log_folder import log_folder
from headgate.tables.payloads.bronze import BronzePayload
from headgate.tables.snapshot import tables_of
from headgate.tables.table import Table
from tests.support.copies import put
from tests.unit.ledger.conftest import NOON, SCHEMAS, Lake, bronze, silver
from tests.unit.maintenance.conftest import (
    AT_ONCE,
    BUILT,
    TOMORROW,
    Fill,
    all_rows,
    compacted,
    files_of,
    lake_in,
    later,
    owned,
    vacuumed,
)
from tests.unit.savepoints.conftest import add_batch, begin, take


@pytest.fixture(autouse=True)
def _checkpoints_are_made_of_short_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.maintenance.retention.WORTH_A_CHECKPOINT", 4)


def maintain(lake: Lake) -> None:
    """Delete all that can be deleted: a log needs a checkpoint after the one it begins with."""
    compacted(lake)
    vacuumed(lake)
    for each in owned(lake):
        DeltaTable(each.storage.uri()).create_checkpoint()
    vacuumed(lake)


Before = dict[str, list[str]]


@pytest.fixture
def maintained(prepared: Callable[[int], Path], tmp_path: Path) -> tuple[Lake, Before]:
    """A lake of twelve batches after ``maintain``, and its rows before it."""

    def make(folder: Path) -> None:
        maintain(lake_in(shutil.copytree(prepared(12), folder, dirs_exist_ok=True)))

    put(tmp_path, "maintained", make)
    return lake_in(tmp_path), all_rows(lake_in(prepared(12)).layout)


def table(lake: Lake, path: str) -> Table:
    return Table(lake.layout.storage, path, pipeline="tiny")


def intact(lake: Lake) -> Iterator[str]:
    for each in tables_of(lake.layout, "tiny"):
        each.refresh()
        each.require_intact()
        yield each.name


@pytest.mark.slow
def test_compaction_and_vacuum_leave_every_table_as_it_is(fill: Fill) -> None:
    lake = fill(6)
    before = all_rows(lake.layout)
    merged = compacted(lake)
    assert {path: merged[path].merged.files for path in SCHEMAS} == {
        "bronze/events": 6,
        "quarantine/events": 6,
        "silver/good": 6,
        "late/per_minute": 6,
        "gold/per_minute": 6,
        "_headgate/files/events": 0,
    }
    assert all_rows(lake.layout) == before
    gone = vacuumed(lake)
    assert all(gone[path].removed.files == 6 for path in merged if merged[path].merged.files)
    assert all_rows(lake.layout) == before
    assert len([path for path in files_of(lake.layout) if "/data/" in path]) == 5
    assert len(tuple(intact(lake))) == len(SCHEMAS)
    assert balance(lake.layout, lake.pipeline).balanced
    assert by_id(lake.layout, lake.pipeline).holds


@pytest.mark.slow
def test_repeated_runs_do_nothing(fill: Fill) -> None:
    lake = fill(6)
    compacted(lake)
    vacuumed(lake)
    versions = {path: table(lake, path).handle.version() for path in SCHEMAS}
    files = set(files_of(lake.layout))
    assert all(not each.merged.files for each in compacted(lake).values())
    assert all(not each.removed.files for each in vacuumed(lake).values())
    after = {path: table(lake, path).handle.version() for path in SCHEMAS}
    # Only the fences of these two runs were added.
    assert after == {path: version + 2 for path, version in versions.items()}
    assert {f for f in files_of(lake.layout) if "_delta_log" not in f} == {
        f for f in files if "_delta_log" not in f
    }


@pytest.mark.long
def test_a_reader_that_began_before_finds_its_files(fill: Fill) -> None:
    lake = fill(6)
    readers = {path: DeltaTable(lake.layout.storage.uri(path)) for path in SCHEMAS}
    before = all_rows(lake.layout)
    compacted(lake)
    done = vacuumed(lake, keep_for=timedelta(hours=1))
    assert {each.removed.files for each in done.values()} == {0}
    assert done["silver/good"].kept["recent"].files == 6
    for path, reader in readers.items():
        assert sorted(map(repr, reader.to_pyarrow_table().to_pylist())) == before[path]
    # A file that was written long ago but removed just now is kept.
    gone = vacuumed(lake, keep_for=TOMORROW, now=datetime.now(UTC) + TOMORROW / 2)
    assert {each.removed.files for each in gone.values()} == {0}
    gone = vacuumed(lake, keep_for=TOMORROW / 2, now=datetime.now(UTC) + TOMORROW)
    assert gone["silver/good"].removed.files == 6


def test_a_file_removed_just_now_is_kept_however_old_it_is(fill: Fill) -> None:
    lake = fill(6)
    for path in files_of(lake.layout, ["silver/good"]):
        if "/data/" in path:
            make_old(lake, path)
    compacted(lake)
    done = vacuumed(lake, "silver/good", keep_for=timedelta(hours=1))
    assert done["silver/good"].kept["recent"].files == 6


def make_old(lake: Lake, path: str) -> None:
    then = (datetime.now(UTC) - timedelta(days=9)).timestamp()
    os.utime(lake.layout.storage.uri(path), (then, then))


@pytest.mark.slow
def test_orphans_go_when_no_attempt_can_still_want_them(fill: Fill) -> None:
    lake = fill(3)
    storage = lake.layout.storage
    folder = "gold/per_minute/data"
    orphans = (f"{folder}/0-4-dead/_temporary/0/part-0.parquet", f"{folder}/x")
    for path in orphans:
        storage.write(path, b"half a file")
    storage.make_folder("silver/good/data/0-2-empty/_temporary")
    kept = vacuumed(lake, keep_for=timedelta(hours=1))
    assert kept["gold/per_minute"].kept["recent"].files == 2
    assert vacuumed(lake)["gold/per_minute"].removed.files == 2
    assert not any(map(storage.exists, orphans))
    assert not storage.exists("gold/per_minute/data/0-4-dead")
    assert not storage.exists("silver/good/data/0-2-empty")


@pytest.mark.long
def test_a_savepoint_can_be_restored_after_all_of_it(fill: Fill) -> None:
    lake = fill(3)
    then = all_rows(lake.layout)
    savepoint = take(lake)
    for n in range(4, 9):
        add_batch(lake, n)
    compacted(lake)
    done = vacuumed(lake)
    assert done["gold/per_minute"].kept["savepoints"].files == 3
    assert done["silver/good"].kept["savepoints"].files == 3
    assert done["silver/good"].kept["batches"].files == 5
    assert done["gold/per_minute"].removed.files == 5
    maintain(lake)
    assert verify(lake.layout, "tiny", savepoint, read=True) == ()
    restore(lake.layout, lake.pipeline, savepoint, 99, NOON)
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
    clone(lake.layout, savepoint, there)
    assert all_rows(there) == before
    assert balance(there, lake.pipeline).balanced


@pytest.mark.slow
def test_what_only_a_savepoint_needed_goes_with_it(fill: Fill) -> None:
    lake = fill(3)
    savepoint = take(lake)
    for n in range(4, 7):
        add_batch(lake, n)
    compacted(lake)
    vacuumed(lake)
    delete(lake.layout, savepoint)
    assert vacuumed(lake)["silver/good"].removed.files == 6


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
    assert log_folder(lake.layout.storage.at("silver/good")).oldest > 10
    held = table(lake, "bronze/events")
    held.fence(99)
    gold = table(lake, "gold/per_minute")
    gold.fence(99)
    intend(held, {"gold/per_minute": Target()}, NOON, why="a test")
    Resets(held).carry_out([gold], NOON)
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
    state = rebuilt.refresh().absorbing(2, NOON)
    (file,) = stage_arrow(rebuilt, state, rows_, time_column="time")
    rebuilt.commit(state, [replace(file, partition={"final": "true"})])
    compacted(lake)
    live = live_files(table(lake, "silver/good").handle)
    assert not any(each.is_across(2) for each in live)
    report = vacuumed(lake, now=datetime.now(UTC) + TOMORROW)
    assert rebuilt.storage.exists(file.path)
    assert report["gold/per_minute"].kept["rebuilt"].files == 1
    assert batches(table(lake, "silver/good"), 2, 6)
    lake.layout.storage.remove(DOCUMENT)
    vacuumed(lake, now=datetime.now(UTC) + TOMORROW)
    assert not rebuilt.storage.exists(file.path)


def test_nothing_is_touched_while_a_reset_is_open(fill: Fill) -> None:
    lake = fill(4)
    held = owned(lake, "bronze/events")[0]
    intend(held, {"silver/good": Target()}, NOON, why="restore of savepoint s1")
    for act in (compacted, vacuumed):
        with pytest.raises(ResetOpenError, match=r"restore of savepoint s1\): silver/good") as e:
            act(lake)
        assert "headgate run PIPELINE --once" in e.value.remedy


@pytest.mark.long
def test_an_intent_goes_with_the_log_when_all_have_done_it(fill: Fill) -> None:
    lake = fill(4)
    held, gold = (owned(lake, p)[0] for p in ("bronze/events", "gold/per_minute"))
    intend(held, {"gold/per_minute": Target()}, NOON, why="a test")
    Resets(held).carry_out([gold], NOON)
    for n in range(1, 5):
        rows_ = [{"window_start": NOON + timedelta(minutes=n), "events": 1}]
        counts = {"pairs": 2, "folded": 1, "late": 1, "final": 1}
        lake.commit("gold/per_minute", n, rows_, counts)
    asked = BronzePayload.of(held.refresh()).reset_commit
    for n in range(5, 12):
        add_batch(lake, n)
    maintain(lake)
    assert log_folder(lake.layout.storage.at("bronze/events")).oldest > asked
    assert Resets(table(lake, "bronze/events")).intent is None
    restore(lake.layout, lake.pipeline, take(lake), 99, NOON)


@pytest.mark.long
def test_logs_are_cut_off_and_prove_themselves(maintained: tuple[Lake, Before]) -> None:
    lake, before = maintained
    for path in ("bronze/events", "silver/good", "gold/per_minute"):
        log = log_folder(lake.layout.storage.at(path))
        assert log.oldest > 10
        assert log.oldest in log.checkpoints
        assert len(log.checkpoints) == 2
        assert min(version for version, _ in log.paths) == log.oldest
        # A damaged checkpoint may be removed: the previous one gives the same table.
        newest = log.checkpoints[-1]
        lake.layout.storage.remove(f"{path}/_delta_log/{newest:020d}.checkpoint.parquet")
        lake.layout.storage.remove(f"{path}/_delta_log/_last_checkpoint")
        again = table(lake, path)
        again.refresh()
        again.require_intact()
    assert all_rows(lake.layout) == before
    add_batch(lake, 13)
    assert balance(lake.layout, lake.pipeline).balanced


@pytest.mark.slow
def test_a_log_is_not_cut_off_at_a_checkpoint_that_is_damaged(fill: Fill) -> None:
    lake = fill(12)
    vacuumed(lake, "silver/good")
    silver = table(lake, "silver/good")
    (first,) = log_folder(silver.storage).checkpoints
    DeltaTable(silver.storage.uri(), version=3).create_checkpoint()
    short = silver.storage.read(f"_delta_log/{3:020d}.checkpoint.parquet")
    silver.storage.remove(f"_delta_log/{3:020d}.checkpoint.parquet")
    silver.refresh()
    DeltaTable(silver.storage.uri()).create_checkpoint()  # a valid one: the table is undamaged
    silver.storage.write(f"_delta_log/{first:020d}.checkpoint.parquet", short)
    before = log_folder(silver.storage).entries
    with pytest.raises(LogGapError, match=f"the checkpoint of version {first} is damaged"):
        vacuumed(lake, "silver/good")
    assert log_folder(silver.storage).entries[: len(before)] == before


@pytest.mark.slow
def test_a_dry_run_reads_only_and_tells_the_same(fill: Fill) -> None:
    lake = fill(6)
    compacted(lake)
    around = read_context(lake.layout, lake.pipeline)
    files = sorted(files_of(lake.layout))
    told = {
        each.name: plan(each, list_files(each), around, timedelta(), later()()).report
        for each in tables_of(lake.layout, "tiny")
    }
    assert sorted(files_of(lake.layout)) == files
    done = vacuumed(lake)
    assert {p: r.removed for p, r in told.items()} == {p: r.removed for p, r in done.items()}


def test_files_that_come_after_the_list_was_made_are_safe(
    fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that froze before it listed the folder finds files of another driver in it. Its
    next look at the table then raises FencedError."""
    lake = fill(4)
    (frozen,) = owned(lake, "silver/good")
    staged = "data/0-5-new/part-0.parquet"
    folders = Storage.folders

    def another_took_over(storage: Storage, path: str = "") -> tuple[str, ...]:
        if path == "data":
            other = table(lake, "silver/good")
            other.fence(frozen.epoch + 1)
            other.storage.write(staged, b"rows")
        return folders(storage, path)

    monkeypatch.setattr(Storage, "folders", another_took_over)
    with pytest.raises(FencedError):
        list_files(frozen)


def test_a_savepoint_that_is_taken_while_it_runs_counts(fill: Fill) -> None:
    """The files that were live at that time are merged before the first table is examined."""
    lake = fill(3)
    around = lake.layout, lake.pipeline, owned(lake, "silver/good", "gold/per_minute")
    savepoints: list[Savepoint] = []

    def turn() -> nullcontext[None]:
        if not savepoints:
            savepoints.append(take(lake))
            tuple(compact(*around, nullcontext, later(), AT_ONCE))
        return nullcontext()

    tuple(vacuum_tables(*around, timedelta(), turn, later()))
    assert verify(lake.layout, "tiny", savepoints[0]) == ()
