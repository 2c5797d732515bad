"""Savepoints as documents: taken, found, damaged, forgotten."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from headgate.history.maintenance.retention_context import all_savepoints
from headgate.history.savepoints.clone import clone_savepoint
from headgate.history.savepoints.errors import NoSuchSavepointError, SavepointError
from headgate.history.savepoints.restore import restore_savepoint
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import (
    UnreadableSavepoint,
    create_savepoint,
    delete_savepoint,
    find_any_savepoint,
    find_savepoint,
    is_last_restorable,
    prune_savepoints,
    read_savepoint,
    savepoints,
)
from headgate.history.savepoints.verify import verify_savepoint
from headgate.lake.storage.documents import Document, read_document, write_document
from headgate.lake.storage.files import Storage
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import REPLAY, position_of
from headgate.lake.tables.snapshot import ConsistentSnapshot, snapshot
from headgate.lake.tables.table import Table
from tests.support.decisions import append, control_of
from tests.unit.history.savepoints.conftest import NOW, add_batch, take
from tests.unit.insight.ledger.conftest import Lake


def path_of(lake: Lake, savepoint: Savepoint) -> Path:
    return Path(lake.layout.storage.uri(Layout.savepoint(savepoint.id)))


def test_what_was_taken_is_found_again(lake: Lake) -> None:
    first = create_savepoint(lake.layout, lake.pipeline, NOW, "before the holidays")
    add_batch(lake, 3)
    second = take(lake, 1)
    assert savepoints(lake.layout) == (second, first)
    assert find_savepoint(lake.layout, "latest") == second
    assert find_savepoint(lake.layout, first.id) == first
    assert (first.sources["events"].n, first.note) == (2, "before the holidays")
    assert second.sources["events"].n == 3
    assert first.tables["gold/per_minute"].rows == 2
    assert first.rows == 6 + 2 + 4 + 2 + 2


def test_the_lowest_table_says_how_far_a_savepoint_is(lake: Lake) -> None:
    lake.commit("bronze/events", 3, [], {"read": 0, "duplicate": 0, "differing": 0})
    savepoint = take(lake)
    assert (savepoint.sources["events"].n, savepoint.bronze["events"].n) == (2, 3)


def test_a_replay_during_a_savepoint_is_in_it_as_a_whole(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restore of bronze would bring back its batch, and no table would know that it is one."""
    bronze = Table(lake.layout.storage, "bronze/events", pipeline=lake.pipeline.name)
    control = control_of(lake.layout.storage, lake.pipeline.name)
    document = {"source": "events", "generation": 0, "before": 0, "rows": 1, "reason": "a test"}
    held = bronze.refresh()
    number = append(control, REPLAY, document, position_of({"events": bronze}), NOW).number
    bronze.commit(replace(held.advanced_to(held.n + 1, NOW), operation=number).counting({}))
    before = iter([number - 1])

    def read(*place: Any) -> ConsistentSnapshot:
        found = snapshot(*place)
        return replace(found, decision=next(before, found.decision))

    monkeypatch.setattr("headgate.history.savepoints.store.snapshot", read)
    assert take(lake).decision == number
    assert next(before, None) is None


@pytest.mark.slow
def test_no_flipped_byte_of_a_savepoint_is_believed(lake: Lake) -> None:
    savepoint = take(lake)
    path = path_of(lake, savepoint)
    written = path.read_bytes()
    for place in range(len(written)):
        flipped = bytearray(written)
        flipped[place] ^= 0x04
        path.write_bytes(flipped)
        (found,) = savepoints(lake.layout)
        assert found == savepoint or isinstance(found, UnreadableSavepoint), flipped[
            place - 9 : place + 9
        ]


@pytest.mark.slow
@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"schema": 1}', b"\xff\xfe"])
def test_a_damaged_savepoint_is_named_and_passed_over(lake: Lake, content: bytes) -> None:
    older, newer = take(lake), take(lake, 1)
    path_of(lake, newer).write_bytes(content)
    assert find_savepoint(lake.layout, "latest") == older
    with pytest.raises(SavepointError, match=f"{newer.id} is damaged") as error:
        find_savepoint(lake.layout, newer.id)
    assert f"headgate savepoint delete PIPELINE {newer.id}" in error.value.remedy


def test_one_that_is_deleted_while_all_are_read_is_none(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example by the schedule, while a vacuum reads what savepoints need."""
    older, newer = take(lake), take(lake, 1)

    def deleted_first(storage: Storage, path: str) -> Document | None:
        storage.remove(Layout.savepoint(newer.id))
        return read_document(storage, path)

    monkeypatch.setattr("headgate.history.savepoints.store.read_document", deleted_first)
    for looked_at in (savepoints, all_savepoints):
        write_document(lake.layout.storage, Layout.savepoint(newer.id), newer.document())
        assert looked_at(lake.layout) == (older,)
    assert read_savepoint(lake.layout, newer.id) is None
    for found in (find_savepoint, find_any_savepoint):
        write_document(lake.layout.storage, Layout.savepoint(newer.id), newer.document())
        with pytest.raises(NoSuchSavepointError, match="no savepoint has this name") as error:
            found(lake.layout, newer.id)
        assert "headgate savepoint list PIPELINE" in error.value.remedy
    lake.layout.storage.remove(Layout.savepoint(older.id))
    with pytest.raises(NoSuchSavepointError, match="no savepoint has this name"):
        find_savepoint(lake.layout, "latest")


def test_one_that_may_not_be_read_stops_nothing(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For example, a restored backup has another owner. The other savepoints are still listed."""
    savepoint = take(lake)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("headgate.history.savepoints.store.read_document", refuse)
    (found,) = savepoints(lake.layout)
    assert isinstance(found, UnreadableSavepoint)
    assert found.id == savepoint.id
    assert "Permission denied" in found.why


def test_what_is_counted_is_what_was_seen(lake: Lake) -> None:
    """The tables have gone on since the snapshot, and the views of them were refreshed."""
    at = snapshot(lake.layout, lake.pipeline)
    add_batch(lake, 3)
    for standing in at.tables.values():
        standing.table.refresh()
    savepoint = Savepoint.of(at, "tiny", "digest", NOW)
    assert savepoint.bronze["events"].rows == 6
    write_document(lake.layout.storage, Layout.savepoint(savepoint.id), savepoint.document())
    assert not verify_savepoint(lake.layout, "tiny", savepoint)


@pytest.mark.slow
def test_somebodys_optimize_is_overlooked_as_a_driver_does(lake: Lake, tmp_path: Path) -> None:
    rows = DeltaTable(lake.layout.storage.uri("bronze/events")).to_pyarrow_table().num_rows
    for path in ("bronze/events", "silver/good"):
        DeltaTable(lake.layout.storage.uri(path)).optimize.compact()
    savepoint = take(lake)
    assert verify_savepoint(lake.layout, "tiny", savepoint, read=True) == ()
    clone_savepoint(lake.layout, savepoint, Layout.of(str(tmp_path / "copy"), "tiny"))
    add_batch(lake, 3)
    restore_savepoint(lake.layout, lake.pipeline, savepoint, 7, NOW)
    restore_savepoint(lake.layout, lake.pipeline, savepoint, 8, NOW, reread=True)
    again = DeltaTable(lake.layout.storage.uri("bronze/events")).to_pyarrow_table().num_rows
    assert again == rows


def test_a_name_that_is_not_one_is_told_with_those_there_are(lake: Lake) -> None:
    savepoint = take(lake)
    for wrong in ("../../etc/passwd", "1999", ""):
        with pytest.raises(SavepointError, match=savepoint.id):
            find_savepoint(lake.layout, wrong)
    take(lake, 1)
    with pytest.raises(SavepointError, match="several savepoints begin with it"):
        find_savepoint(lake.layout, "2026")


@pytest.mark.slow
def test_age_and_number_say_what_is_forgotten(lake: Lake) -> None:
    taken = [take(lake, minutes) for minutes in range(6)]
    now = NOW + timedelta(minutes=6)
    gone = prune_savepoints(lake.layout, lake.pipeline, now, keep=2, keep_for=timedelta(minutes=4))
    assert {each.id for each in gone} == {each.id for each in taken[:2]}
    assert savepoints(lake.layout) == tuple(reversed(taken[2:]))


@pytest.mark.slow
def test_one_s_own_savepoints_are_forgotten_and_nobody_else_s(lake: Lake) -> None:
    ours = [
        create_savepoint(lake.layout, lake.pipeline, NOW + timedelta(minutes=n), "ours")
        for n in range(3)
    ]
    theirs = create_savepoint(
        lake.layout, lake.pipeline, NOW - timedelta(days=1), "before the move"
    )
    now = NOW + timedelta(days=9)
    gone = prune_savepoints(
        lake.layout, lake.pipeline, now, keep=1, keep_for=timedelta(0), note="ours"
    )
    assert {each.id for each in gone} == {each.id for each in ours[:2]}
    assert {each.id for each in savepoints(lake.layout) if isinstance(each, Savepoint)} == {
        ours[2].id,
        theirs.id,
    }


@pytest.mark.slow
def test_the_last_that_can_be_restored_is_never_forgotten(lake: Lake) -> None:
    good = take(lake)
    add_batch(lake, 3)
    bad = [take(lake, minutes) for minutes in (1, 2)]
    for file in Path(lake.layout.storage.uri("gold/per_minute/data")).glob("0-3-*/*.parquet"):
        file.unlink()
    assert is_last_restorable(lake.layout, lake.pipeline, good)
    assert not is_last_restorable(lake.layout, lake.pipeline, bad[0])
    now = NOW + timedelta(days=9)
    assert not prune_savepoints(lake.layout, lake.pipeline, now, keep=2, keep_for=timedelta(0))
    delete_savepoint(lake.layout, bad[0])
    delete_savepoint(lake.layout, bad[1])
    assert not prune_savepoints(lake.layout, lake.pipeline, now, keep=1, keep_for=timedelta(0))
    assert savepoints(lake.layout) == (good,)
