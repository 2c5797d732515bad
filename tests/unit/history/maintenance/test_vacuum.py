"""Vacuum deletes the files that nothing needs, and no others."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

import pytest
from deltalake import DeltaTable

from headgate.history.maintenance.retention_context import read_context
from headgate.history.maintenance.steps import compact_tables, vacuum_tables
from headgate.history.maintenance.vacuum import list_files, plan_vacuum
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.verify import verify_savepoint
from headgate.insight.ledger import balance
from headgate.insight.ledger.by_id import by_id
from headgate.lake.storage.files import Storage
from headgate.lake.tables.decisions import DECISIONS
from headgate.lake.tables.errors import FencedError
from headgate.lake.tables.snapshot import tables_of
from tests.unit.history.maintenance.conftest import (
    AT_ONCE,
    TOMORROW,
    Fill,
    all_rows,
    compacted,
    files_of,
    later,
    owned,
    table,
    vacuumed,
)
from tests.unit.history.savepoints.conftest import take
from tests.unit.insight.ledger.conftest import SCHEMAS, Lake

pytestmark = pytest.mark.usefixtures("short_logs")


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
    assert {*intact(lake)} == {DECISIONS, *SCHEMAS}
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


@pytest.mark.slow
def test_a_dry_run_reads_only_and_tells_the_same(fill: Fill) -> None:
    lake = fill(6)
    compacted(lake)
    around = read_context(lake.layout, lake.pipeline)
    files = sorted(files_of(lake.layout))
    told = {
        each.name: plan_vacuum(each, list_files(each), around, timedelta(), later()()).report
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

    def turn(_: str) -> nullcontext[None]:
        if not savepoints:
            savepoints.append(take(lake))
            tuple(compact_tables(*around, nullcontext, later(), AT_ONCE))
        return nullcontext()

    tuple(vacuum_tables(*around, timedelta(), turn, later()))
    assert verify_savepoint(lake.layout, "tiny", savepoints[0]) == ()
