"""Open rows are found with their states, also if another tool rewrites the files without states."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from headgate.lake.storage.files import Storage
from headgate.lake.tables.arrow import stage_arrow
from headgate.lake.tables.data_file import STATE, DataFile
from headgate.lake.tables.errors import DamagedFileError
from headgate.lake.tables.open_rows import OpenRows, open_rows
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.table import Table

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
NAMED = [("window_start", pa.timestamp("us", "UTC")), ("n", pa.int64())]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    made = Table(Storage(str(tmp_path)), "gold/t", pipeline="p")
    made.create(pa.schema([*NAMED, ("final", pa.bool_())]), "digest", time_column="window_start")
    made.fence(1)
    add_batch(made, 1)
    return made


def add_batch(table: Table, n: int) -> None:
    """Replace the open rows by two files of two open rows each, and add a file of final rows."""
    state = table.refresh().advanced_to(n, NOON, GoldPayload(open=4))
    added = []
    for final, number in (("false", n), ("false", 10 * n), ("true", 100 * n)):
        both = [{"window_start": NOON, "n": i, STATE: i} for i in (number, number + 1)]
        if final == "true":
            both = [row | {STATE: None} for row in both]
        rows = pa.Table.from_pylist(both, pa.schema([*NAMED, (STATE, pa.int64())]))
        (file,) = stage_arrow(table, state, rows, time_column="window_start")
        added.append(replace(file, partition={"final": final}))
    table.commit(state, added, open_rows(table).live)
    table.refresh()


def optimize(table: Table) -> None:
    DeltaTable(table.storage.uri()).optimize.compact()
    table.refresh()


def states(table: Table, files: tuple[DataFile, ...]) -> list[int]:
    read = (pq.ParquetFile(table.storage.uri(file.path)).read() for file in files)
    return sorted(state for rows in read for state in rows.column(STATE).to_pylist())


def test_they_are_those_of_the_last_batch_with_their_checksums(table: Table) -> None:
    table.commit(table.refresh().held("fence", 1))
    table.refresh()
    found = open_rows(table)
    assert found.live == found.files
    assert states(table, found.files) == [1, 2, 10, 11]
    assert all(file.footer for file in found.files)


def test_a_table_without_any_has_none(table: Table) -> None:
    state = replace(table.refresh().held("operation", 1), payload=GoldPayload(open=0))
    table.commit(state, (), open_rows(table).live)
    table.refresh()
    assert open_rows(table) == OpenRows()


def test_states_outlive_an_optimize(table: Table) -> None:
    add_batch(table, 2)
    optimize(table)
    found = open_rows(table)
    (merged,) = found.live
    assert STATE not in pq.ParquetFile(table.storage.uri(merged.path)).schema_arrow.names
    assert states(table, found.files) == [2, 3, 20, 21]
    add_batch(table, 3)
    found = open_rows(table)
    assert found.live == found.files
    assert states(table, found.files) == [3, 4, 30, 31]


@pytest.mark.parametrize("harm", ["deleted rows", "deleted all", "vacuumed"])
def test_what_cannot_be_folded_on_is_said(table: Table, harm: str) -> None:
    if harm == "deleted rows":
        DeltaTable(table.storage.uri()).delete("n = 1")
    elif harm == "deleted all":
        DeltaTable(table.storage.uri()).delete("final = false")
    else:
        optimize(table)
        DeltaTable(table.storage.uri()).vacuum(0, False, enforce_retention_duration=False)
    table.refresh()
    with pytest.raises(DamagedFileError, match="another tool") as told:
        open_rows(table)
    assert str(told.value).endswith("headgate run PIPELINE --full-refresh gold.t")
