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


def step(lake: Lake, path: str, n: int) -> None:
    """Commit the batches up to batch ``n`` without rows to a table, in one step."""
    table = lake.table(path)
    held = table.refresh()
    table.commit(replace(held, kind="data", from_n=held.n, n=n, at=1))


def test_versions_are_those_of_a_batch_with_which_all_steps_have_ended(empty_lake: Lake) -> None:
    for path, ends in {
        "bronze/events": range(1, 9),
        "silver/good": (1, 3, 4, 5, 7, 8),
        GOLD: (1, 2, 4, 6, 8),
    }.items():
        for n in ends:
            step(empty_lake, path, n)
    place = empty_lake.layout, empty_lake.pipeline
    newest = versions_at(*place)
    assert newest.n == {"events": 8}
    step(empty_lake, "bronze/events", 9)
    step(empty_lake, "silver/good", 9)
    assert versions_at(*place) == newest
    of_four = versions_at(*place, {"events": 4})
    found = {path: of_four.versions[path] for path in ("bronze/events", "silver/good", GOLD)}
    assert found == {"bronze/events": 4, "silver/good": 3, GOLD: 3}
    for n in (5, 6, 7):
        with pytest.raises(NoSuchBatchError, match=f"processed batch {n} only together") as refused:
            versions_at(*place, {"events": n})
        assert "choose batch 4, or a later one" in str(refused.value)


def test_logs_may_have_no_batch_with_which_all_steps_have_ended(empty_lake: Lake) -> None:
    for path, ends in {"bronze/events": range(1, 7), "silver/good": (5, 6), GOLD: (4,)}.items():
        for n in ends:
            step(empty_lake, path, n)
    place = empty_lake.layout, empty_lake.pipeline
    assert versions_at(*place).n == {"events": 0}
    silver = empty_lake.table("silver/good")
    DeltaTable(silver.storage.uri()).create_checkpoint()
    log = Path(silver.storage.uri()) / "_delta_log"
    (log / f"{0:020}.json").unlink()
    with pytest.raises(NoSuchBatchError, match="no batch with which a step of each has ended"):
        versions_at(*place)
