"""Refreshing a table gives the state and files of one version. It is cheap if nothing was
committed, however long the log is."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from headgate.lake.tables import log_follower
from headgate.lake.tables.errors import CommitRefusedError, FencedError, LogGapError
from headgate.lake.tables.live_files import live_paths
from headgate.lake.tables.log import FOREIGN_COMMITS, entry_path
from headgate.lake.tables.table import Table
from tests.unit.lake.tables.conftest import Open, file, next_batch


def files(table: Table) -> str:
    return "".join(sorted(Path(path).stem for path in live_paths(table.handle)))


@pytest.mark.slow
def test_each_commit_is_seen_by_every_view_of_the_table(open_table: Open) -> None:
    writer, reader = open_table(), open_table()
    writer.fence(1)
    for n in range(1, 60):  # enough commits to reopen a handle
        assert reader.refresh().n == n - 1
        next_batch(writer, file(str(n)))
        assert (writer.refresh().n, reader.refresh().n) == (n, n)
        assert reader.refresh().data_commit == reader.version


def test_nothing_is_listed_where_nothing_was_committed(
    open_table: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = open_table()
    state = table.fence(1)
    table.refresh()
    held, columns = table.handle, table.schema

    def never(*_: object) -> None:
        raise AssertionError("a log grows for as long as a driver runs")

    monkeypatch.setattr(DeltaTable, "update_incremental", never)
    monkeypatch.setattr(DeltaTable, "schema", never)
    monkeypatch.setattr(log_follower, "list_log", never)
    monkeypatch.setattr(log_follower, "last_commit", never)
    assert [table.refresh() for _ in range(3)] == [state] * 3
    assert (table.handle, table.schema) == (held, columns)


def test_the_files_are_those_of_the_state_and_not_of_a_later_commit(
    open_table: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If they were of different versions, the accounting would not match the files."""
    writer, reader = open_table(), open_table()
    writer.fence(1)
    reader.refresh()
    next_batch(writer, file("a"))
    assert reader.refresh().n == 1
    next_batch(writer, file("b"))
    assert files(reader) == "a"
    update = DeltaTable.update_incremental

    def update_then_commit(handle: DeltaTable) -> None:
        update(handle)
        monkeypatch.setattr(DeltaTable, "update_incremental", update)
        next_batch(writer, file("c"))

    assert reader.refresh().n == 2
    monkeypatch.setattr(DeltaTable, "update_incremental", update_then_commit)
    assert files(reader) == "ab"
    assert (reader.state.n, reader.refresh().n) == (2, 3)
    assert files(reader) == "abc"


def test_following_a_table_does_not_read_its_log_with_delta_rs(
    open_table: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer, reader = open_table(), open_table()
    writer.fence(1)
    reader.refresh()
    columns = reader.schema
    for n in range(1, 30):
        next_batch(writer, file(str(n)))
        assert reader.refresh().n == n
    monkeypatch.setattr(log_follower, "DeltaTable", None)
    monkeypatch.setattr(DeltaTable, "update_incremental", None)
    assert (reader.version, reader.schema) == (30, columns)
    monkeypatch.undo()
    assert len(live_paths(reader.handle)) == 29


def test_the_state_alone_is_read_without_delta_rs(
    open_table: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = open_table()
    writer.fence(1)
    next_batch(writer, file("a"))
    reader = open_table()
    monkeypatch.setattr(log_follower, "DeltaTable", None)
    assert (reader.exists, reader.refresh().n, reader.version) == (True, 1, 2)
    monkeypatch.undo()
    assert files(reader) == "a"


def test_a_log_with_a_missing_entry_is_read_from_a_later_checkpoint_alone(open_table: Open) -> None:
    writer = open_table()
    writer.fence(1)
    for n in range(5):
        next_batch(writer, file(str(n)))
    missing = Path(writer.log.uri(entry_path(3)))
    missing.rename(missing.with_suffix(".gone"))
    with pytest.raises(LogGapError):
        open_table().refresh()
    missing.with_suffix(".gone").rename(missing)
    writer.handle.create_checkpoint()
    next_batch(writer, file("last"))
    missing.unlink()
    assert open_table().refresh().n == 6


def test_an_older_driver_meets_the_fence(open_table: Open) -> None:
    older, newer = open_table(), open_table()
    older.fence(1)
    held = older.refresh()
    newer.fence(2)
    with pytest.raises(CommitRefusedError):
        older.commit(held)
    with pytest.raises(FencedError):
        older.refresh()


def test_commits_of_others_are_overlooked_up_to_a_bound(open_table: Open) -> None:
    table = open_table()
    state = table.fence(1)
    for _ in range(FOREIGN_COMMITS):
        table.handle.alter.set_table_properties({"delta.checkpointInterval": "50"})
        assert table.refresh() == state
    table.handle.alter.set_table_properties({"delta.checkpointInterval": "50"})
    with pytest.raises(CommitRefusedError, match="the only writer"):
        table.refresh()
