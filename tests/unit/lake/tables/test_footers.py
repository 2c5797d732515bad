"""Footers of a table's files, requested again and again."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.lake.tables import history
from headgate.lake.tables.history import Footers, with_footers
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.log import Commit, entry_path, read_commit
from headgate.lake.tables.table import Table
from tests.unit.insight.ledger.conftest import Lake, bronze
from tests.unit.insight.ledger.conftest import empty_lake as _empty_lake

empty_lake = _empty_lake
BATCHES = 5


def commit(lake: Lake, n: int) -> None:
    lake.commit("bronze/events", n, [bronze(n)], {"read": 1})


@pytest.fixture
def table(empty_lake: Lake) -> Table:
    for n in range(1, BATCHES + 1):
        commit(empty_lake, n)
    found = Table(empty_lake.layout.storage, "bronze/events", pipeline="tiny")
    found.refresh()
    return found


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The versions whose entries were read, in order."""
    versions: list[int] = []

    def reading(storage: object, version: int) -> Commit | None:
        versions.append(version)
        return read_commit(storage, version)  # type: ignore[arg-type]

    monkeypatch.setattr(history, "read_commit", reading)
    return versions


def test_the_log_is_read_back_only_as_far_as_is_asked_and_once(
    empty_lake: Lake, table: Table, read: list[int]
) -> None:
    footers = Footers(table)
    files = sorted(live_files(table.handle), key=lambda file: -file.n)
    assert footers.of(table.version, files[:1])[0].footer is not None
    assert read == [BATCHES]
    assert footers.of(table.version, files[:3]) == with_footers(table, BATCHES, files[:3])
    read.clear()
    assert all(file.footer is not None for file in footers.of(table.version, files))
    assert read == [2, 1]
    read.clear()
    footers.of(table.version, files)
    assert read == []


def test_what_was_committed_since_is_read_too(
    empty_lake: Lake, table: Table, read: list[int]
) -> None:
    footers = Footers(table)
    footers.of(table.version, live_files(table.handle))
    read.clear()
    for n in (BATCHES + 1, BATCHES + 2):
        commit(empty_lake, n)
    table.refresh()
    files = live_files(table.handle)
    read.clear()
    assert footers.of(table.version, files) == with_footers(table, BATCHES + 2, files)
    assert read[:3] == [BATCHES + 2, BATCHES + 1, BATCHES]


def test_a_damaged_entry_leaves_files_behind_it_unknown(table: Table, read: list[int]) -> None:
    files = sorted(live_files(table.handle), key=lambda file: file.n)
    Path(table.storage.uri(entry_path(2))).write_text("{")
    footers = Footers(table)
    for _ in range(2):
        known = [file.footer is not None for file in footers.of(table.version, files)]
        assert known == [False, False, True, True, True]
