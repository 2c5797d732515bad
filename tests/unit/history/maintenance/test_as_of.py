"""Gold that lags behind is compared with silver as it was at gold's batch, also after
maintenance."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.history import files_at, lineage
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.table import Table
from tests.support.arrow_tables import rows_of
from tests.unit.history.maintenance.conftest import Fill, compacted
from tests.unit.history.savepoints.conftest import add_batch
from tests.unit.insight.ledger.conftest import Lake

BATCHES = 6


def offsets(table: Table, n: int) -> list[int]:
    return sorted(row["_offset"] for row in rows_of(table, files_at(table, n)))


def silver(lake: Lake) -> Table:
    return Table(lake.layout.storage, "silver/good", pipeline=lake.pipeline.name)


@pytest.mark.slow
def test_what_silver_had_at_each_batch(fill: Fill) -> None:
    lake = fill(BATCHES)
    table = silver(lake)
    table.refresh()
    added = {c.state.n: c.files for c in lineage(table) if c.state.kind == "data"}
    expected = {
        n: sorted(r["_offset"] for m in range(1, n + 1) for r in rows_of(table, added[m]))
        for n in range(1, BATCHES + 1)
    }
    assert len(expected[BATCHES]) > len(expected[1]) > 0
    assert {n: offsets(table, n) for n in expected} == expected
    # One file now has the rows of all batches; each batch is read from the last version with its
    # own file.
    compacted(lake)
    after = silver(lake)
    after.refresh()
    assert any(file.is_across(1) for file in live_files(after.handle))
    add_batch(lake, BATCHES + 1)
    assert {n: offsets(silver(lake), n) for n in expected} == expected


@pytest.mark.parametrize(
    ("path", "rebuilt"),
    [("silver/good", "silver.good"), ("late/per_minute", "gold.per_minute")],
)
def test_what_a_table_had_before_another_tool_rewrote_its_files(
    fill: Fill, path: str, rebuilt: str
) -> None:
    lake = fill(BATCHES)
    table = Table(lake.layout.storage, path, pipeline=lake.pipeline.name)
    table.refresh()
    expected = {n: offsets(table, n) for n in range(1, BATCHES + 1)}
    other = DeltaTable(table.storage.uri())
    other.optimize.compact()
    assert not all(file.is_ours for file in files_at(table, BATCHES))
    assert {n: offsets(table, n) for n in expected} == expected
    add_batch(lake, BATCHES + 1)
    assert {n: offsets(table, n) for n in expected} == expected
    other.vacuum(0, False, enforce_retention_duration=False)
    assert offsets(table, BATCHES + 1)[:-1], "the newest batch needs no earlier version"
    with pytest.raises(LogGapError, match="another tool has rewritten its files") as error:
        files_at(table, 1)
    assert f"--full-refresh {rebuilt}" in error.value.remedy
