"""What a copy must contain, so that every table in it can go on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from headgate.declaration.load import load
from headgate.history.savepoints.clone import clone_savepoint
from headgate.history.savepoints.resets import Resets, ResetTarget
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.history import batches
from headgate.lake.tables.table import Table
from tests.support.decisions import control_of, reset_to
from tests.unit.history.maintenance.conftest import compacted, owned
from tests.unit.history.savepoints.conftest import NOW, add_batch, take
from tests.unit.insight.ledger.conftest import DECLARATION, SCHEMAS, Lake


def process(table: Table, batches: range) -> None:
    for n in batches:
        table.commit(replace(table.refresh().advanced_to(n, NOW), batch={}))


@pytest.mark.slow
def test_a_copy_has_the_batches_of_a_silver_table_that_no_gold_table_reads(
    lake: Lake, tmp_path: Path
) -> None:
    """The silver table is being built anew and is at batch 2, and bronze's files were merged."""
    for n in range(3, 7):
        add_batch(lake, n)
    lake.pipeline.file.write_text(
        DECLARATION.replace("gold:", "  side:\n    from: events\ngold:", 1)
    )
    lake.pipeline = load(lake.pipeline.file)
    side = Table(lake.layout.storage, "silver/side", pipeline="tiny")
    side.create(pa.schema(SCHEMAS["silver/good"]), "digest", time_column="time")
    process(side, range(1, 7))
    compacted(lake)
    tables = {table.name: table for table in owned(lake)}
    bronze = tables["bronze/events"]
    control = control_of(lake.layout.storage, "tiny", bronze.epoch)
    reset_to(control, {"silver/side": ResetTarget()}, NOW)
    Resets(control).carry_out(tables.values(), NOW)
    process(tables["silver/side"], range(1, 3))
    savepoint = take(lake)
    assert savepoint.sources["events"].n == 2
    there = Layout.of(str(tmp_path / "copy"), "tiny")
    clone_savepoint(lake.layout, savepoint, there)
    read, copied = (
        [(c.state.from_n, c.state.n, len(c.files)) for c in batches(each, 2, 6)]
        for each in (bronze, Table(there.storage, "bronze/events", pipeline="tiny"))
    )
    assert read == copied
    assert len(copied) == 4
