"""Logs are trimmed behind a checkpoint, and remain provable."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from headgate.insight.ledger import balance
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.log import list_log
from tests.unit.history.maintenance.conftest import (
    Before,
    Fill,
    all_rows,
    table,
    vacuumed,
)
from tests.unit.history.savepoints.conftest import add_batch
from tests.unit.insight.ledger.conftest import Lake

pytestmark = pytest.mark.usefixtures("short_logs")


@pytest.mark.long
def test_logs_are_cut_off_and_prove_themselves(maintained: tuple[Lake, Before]) -> None:
    lake, before = maintained
    for path in ("bronze/events", "silver/good", "gold/per_minute"):
        log = list_log(lake.layout.storage.at(path))
        assert log.oldest > 10
        assert log.oldest in log.checkpoints
        assert len(log.checkpoints) == 2
        assert min(version for version, _ in log.paths) == log.oldest
        # A damaged checkpoint may be removed: the previous one gives the same table.
        newest = log.checkpoints[-1]
        lake.layout.storage.remove(f"{path}/_delta_log/{newest:020d}.checkpoint.parquet")
        lake.layout.storage.remove(f"{path}/_delta_log/_last_checkpoint")
        again = table(lake, path)
        again.refresh()
        again.require_intact()
    assert all_rows(lake.layout) == before
    add_batch(lake, 13)
    assert balance(lake.layout, lake.pipeline).balanced


@pytest.mark.slow
def test_a_log_is_not_cut_off_at_a_checkpoint_that_is_damaged(fill: Fill) -> None:
    lake = fill(12)
    vacuumed(lake, "silver/good")
    silver = table(lake, "silver/good")
    (first,) = list_log(silver.storage).checkpoints
    DeltaTable(silver.storage.uri(), version=3).create_checkpoint()
    short = silver.storage.read(f"_delta_log/{3:020d}.checkpoint.parquet")
    silver.storage.remove(f"_delta_log/{3:020d}.checkpoint.parquet")
    silver.refresh()
    DeltaTable(silver.storage.uri()).create_checkpoint()  # a valid one: the table is undamaged
    silver.storage.write(f"_delta_log/{first:020d}.checkpoint.parquet", short)
    before = list_log(silver.storage).entries
    with pytest.raises(LogGapError, match=f"the checkpoint of version {first} is damaged"):
        vacuumed(lake, "silver/good")
    assert list_log(silver.storage).entries[: len(before)] == before
