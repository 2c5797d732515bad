"""A batch that the tables no longer have, and what has removed it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from headgate.insight.querying.versions import NoSuchBatchError, versions_at
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.state import State
from tests.unit.insight.ledger.conftest import Lake, fill
from tests.unit.insight.ledger.conftest import empty_lake as _empty_lake

empty_lake = _empty_lake
GOLD = "gold/per_minute"


def process(lake: Lake, n: int) -> None:
    """Commit batch ``n`` without rows to the tables that are before it."""
    for path in ("bronze/events", "silver/good", "late/per_minute", GOLD):
        table = lake.table(path)
        held = table.refresh()
        if held.n < n:
            table.commit(replace(held, kind="data", from_n=held.n, n=n, at=1))


def entry(lake: Lake, version: int) -> Path:
    return Path(lake.layout.storage.uri(GOLD)) / "_delta_log" / f"{version:020}.json"


def test_a_rebuild_has_taken_it_where_no_vacuum_ran(empty_lake: Lake) -> None:
    fill(empty_lake)
    gold = empty_lake.table(GOLD)
    held = gold.refresh()
    gold.commit(State(held.payload, kind="reset", generation=held.generation + 1, n=2, from_n=2))
    process(empty_lake, 2)
    process(empty_lake, 3)
    with pytest.raises(NoSuchBatchError, match="log of gold/per_minute") as refused:
        versions_at(empty_lake.layout, empty_lake.pipeline, {"events": 1})
    assert "batch 1; a restore or a rebuild has replaced its history" in refused.value.message
    assert "vacuum" not in str(refused.value)


@pytest.mark.parametrize("restored", [False, True])
def test_a_vacuum_has_taken_it(empty_lake: Lake, restored: bool) -> None:
    """Also if a restore went back to a version that the vacuum has removed."""
    fill(empty_lake)
    process(empty_lake, 2)
    process(empty_lake, 3)
    gold = empty_lake.table(GOLD)
    if restored:
        held = gold.refresh()
        gold.commit(replace(held, kind="reset", generation=1, origin=gold.version, at=1))
    DeltaTable(gold.storage.uri()).create_checkpoint()
    gold.refresh()
    for version in range(gold.version):
        entry(empty_lake, version).unlink()
    with pytest.raises(NoSuchBatchError, match="batch 1; a vacuum has trimmed it"):
        versions_at(empty_lake.layout, empty_lake.pipeline, {"events": 1})


def test_a_lost_entry_is_damage(empty_lake: Lake) -> None:
    fill(empty_lake)
    process(empty_lake, 2)
    process(empty_lake, 3)
    gold = empty_lake.table(GOLD)
    gold.refresh()
    DeltaTable(gold.storage.uri()).create_checkpoint()
    entry(empty_lake, gold.version - 1).unlink()
    with pytest.raises(LogGapError):
        versions_at(empty_lake.layout, empty_lake.pipeline, {"events": 1})
