"""Which commits a publication sends after resets and new columns."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import Schema

from headgate.flow.publish.changes import changes
from headgate.history.savepoints.resets import ResetTarget, reset_table
from headgate.lake.storage.files import Storage
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.extending import extend
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
TIME = ("time", pa.timestamp("us", "UTC"))
NARROW = pa.schema([TIME, ("about", pa.struct([("a", pa.int64())]))])
WIDE = pa.schema([TIME, ("about", pa.struct([("a", pa.int64()), ("b", pa.string())]))])


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = Table(Storage(str(tmp_path)), "late/t", pipeline="p")
    made.create(NARROW, "narrow", time_column="time")
    return made


def process(table: Table, n: int, name: str) -> State:
    path = f"data/{name}.parquet"
    table.storage.write(path, b"")
    state = table.refresh().advanced_to(n, NOON).counting({"late": 1})
    return table.commit(state, (DataFile(path, 1, 1, '{"numRecords": 1}', {}),))


def sent(table: Table) -> list[str]:
    table.refresh()
    found = changes(table, 0, table.version)
    return [f.path.removeprefix("data/").removesuffix(".parquet") for c in found for f in c.files]


def live(table: Table) -> set[str]:
    table.refresh()
    files = live_files(table.handle)
    return {f.path.removeprefix("data/").removesuffix(".parquet") for f in files}


def test_rows_that_a_restore_has_kept_are_sent_after_columns_were_added(table: Table) -> None:
    for n in (1, 2):
        process(table, n, f"{n}")
    kept = ResetTarget(files=table.refresh().files, version=table.version)
    process(table, 3, "3")
    reset_table(table, kept, 1, NOON)
    process(table, 3, "3-again")
    before = sent(table)
    extend(table, Schema.from_arrow(WIDE), "wide", NOON)
    process(table, 4, "4")
    assert before == ["1", "2", "3", "3-again"]
    assert sent(table) == [*before, "4"]
    assert {*sent(table)} >= live(table)


def test_rows_with_other_columns_that_a_reset_has_replaced_are_not_sent(table: Table) -> None:
    process(table, 1, "1")
    extend(table, Schema.from_arrow(WIDE), "wide", NOON)
    process(table, 2, "2")
    reset_table(table, ResetTarget(), 1, NOON)
    process(table, 1, "1-again")
    assert sent(table) == ["1-again"]
