"""Jobs of a pipeline that start at the same moment create the same tables."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from deltalake import DeltaTable

from headgate.lake.storage.files import Storage
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.table import Table
from tests.unit.lake.tables.conftest import SCHEMA, TIME

ROUNDS = 25  # if losing the race is an error, about one in two fails


@pytest.mark.slow
def test_three_make_a_table_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    is_there, all_looked = DeltaTable.is_deltatable, threading.Barrier(3)
    first_look, errors = threading.local(), list[BaseException]()

    def look(uri: str) -> bool:
        found = is_there(uri)
        if not getattr(first_look, "done", False):
            first_look.done = True
            all_looked.wait(20)  # none creates it before all have seen that it is missing
        return found

    monkeypatch.setattr(DeltaTable, "is_deltatable", staticmethod(look))

    def make(path: str) -> None:
        try:
            table = Table(Storage(str(tmp_path)), path, pipeline="p")
            table.create(SCHEMA, "digest", time_column=TIME)
            assert table.refresh().definition == "digest"
        except BaseException as error:
            errors.append(error)

    for number in range(ROUNDS):
        threads = [threading.Thread(target=make, args=[f"bronze/b{number}"]) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert errors == []


def test_a_table_that_is_not_there_is_missing_and_one_without_entries_is_damaged(
    tmp_path: Path,
) -> None:
    table = Table(Storage(str(tmp_path)), "bronze/b", pipeline="p")
    assert not table.exists
    with pytest.raises(FileNotFoundError):
        table.refresh()
    table.storage.write("_delta_log/00000000000000000003.crc", b"")
    assert table.reader().exists
    with pytest.raises(LogGapError):
        table.refresh()
