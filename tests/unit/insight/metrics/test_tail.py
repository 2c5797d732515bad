"""Following a log reads each entry once, whatever happens to the log meanwhile."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from headgate.insight.metrics import tail as tails
from headgate.insight.metrics.tail import TableTail
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.log import entry_path
from tests.unit.insight.ledger.conftest import Lake, bronze

PATH = "bronze/events"


def commit(lake: Lake, *batches: int) -> None:
    for n in batches:
        lake.commit(PATH, n, [bronze(n)], {"read": 1})


def follow(lake: Lake) -> TableTail:
    return TableTail(lake.layout.storage, PATH)


def batches(tail: TableTail) -> list[int]:
    return [commit.state.n for commit in tail.poll()]


def newest(tail: TableTail) -> int | None:
    return None if tail.commit is None else tail.commit.state.n


def test_it_begins_with_the_newest_entry_and_reads_each_later_one_once(lake: Lake) -> None:
    commit(lake, 1, 2)
    tail = follow(lake)
    assert batches(tail) == []
    assert newest(tail) == 2
    assert batches(tail) == []
    commit(lake, 3, 4)
    assert batches(tail) == [3, 4]
    assert batches(tail) == []


def test_a_table_that_comes_later_is_found(lake: Lake, tmp_path: Path) -> None:
    tail = TableTail(lake.layout.storage.at("elsewhere"), PATH)
    assert tail.poll() == ()
    assert newest(tail) is None
    shutil.copytree(lake.layout.storage.uri(PATH), lake.layout.storage.uri(f"elsewhere/{PATH}"))
    assert tail.poll() == ()
    assert newest(tail) == 0


def test_a_table_that_goes_and_comes_back_shorter(lake: Lake, tmp_path: Path) -> None:
    commit(lake, 1)
    before = shutil.copytree(lake.layout.storage.uri(PATH), tmp_path / "before")
    commit(lake, 2, 3)
    tail = follow(lake)
    tail.poll()
    shutil.rmtree(lake.layout.storage.uri(PATH))
    assert batches(tail) == []
    assert newest(tail) is None
    shutil.copytree(before, lake.layout.storage.uri(PATH))
    assert batches(tail) == []
    assert newest(tail) == 1


def test_a_log_that_was_trimmed_goes_on_at_its_end(lake: Lake) -> None:
    commit(lake, 1)
    tail = follow(lake)
    tail.poll()
    commit(lake, 2, 3)
    lake.table(PATH).refresh()
    lake.table(PATH).handle.create_checkpoint()
    for version in range(3):
        lake.layout.storage.remove(f"{PATH}/{entry_path(version)}")
    assert batches(tail) == []
    assert newest(tail) == 3


def test_a_damaged_entry_is_an_error_each_time_until_it_is_corrected(lake: Lake) -> None:
    commit(lake, 1)
    tail = follow(lake)
    tail.poll()
    commit(lake, 2)
    storage, path = lake.layout.storage, f"{PATH}/{entry_path(2)}"
    whole = storage.read(path)
    storage.write(path, whole[: len(whole) // 2])
    for _ in range(2):
        with pytest.raises(LogGapError, match="damaged"):
            tail.poll()
    storage.write(path, whole)
    assert batches(tail) == [2]


def test_a_long_way_behind_is_read_in_parts(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tails, "MOST_AT_ONCE", 2)
    tail = follow(lake)
    tail.poll()
    commit(lake, 1, 2, 3, 4, 5)
    assert [batches(tail) for _ in range(3)] == [[1, 2], [3, 4], [5]]


def test_entries_of_other_tools_are_passed_over(lake: Lake) -> None:
    commit(lake, 1, 2)
    tail = follow(lake)
    tail.poll()
    lake.table(PATH).refresh()
    lake.table(PATH).handle.optimize.compact()
    assert batches(tail) == []
    assert newest(tail) == 2
    assert batches(tail) == []
