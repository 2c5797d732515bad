"""Maintenance that dies at any point loses nothing, and the next run finishes it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from deltalake import DeltaTable

from headgate.history.savepoints.verify import verify_savepoint
from headgate.lake.tables.history import batches
from headgate.lake.tables.log import list_log
from headgate.lake.tables.snapshot import tables_of
from headgate.lake.tables.table import Table
from tests.support.failing import dying
from tests.unit.history.maintenance.conftest import (
    Fill,
    all_rows,
    compacted,
    files_of,
    owned,
    rows,
    vacuumed,
)
from tests.unit.history.savepoints.conftest import add_batch, take
from tests.unit.insight.ledger.conftest import Lake

pytestmark = pytest.mark.slow

SILVER = "silver/good"


def dies(place: str, nth: int, act: Callable[[], object]) -> bool:
    """Run ``act``, which dies at the NTH failpoint whose name begins with ``place``. Returns
    whether it reached that failpoint."""
    with dying(place, nth, certainly=False) as passed:
        act()
    return sum(name.startswith(place) for name in passed) == nth


def check(lake: Lake, before: object) -> None:
    assert all_rows(lake.layout) == before
    for table in tables_of(lake.layout, "tiny"):
        table.refresh()
        table.require_intact()


@pytest.mark.long
def test_vacuum_that_dies_after_every_single_step(
    fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.history.maintenance.retention.WORTH_A_CHECKPOINT", 4)
    lake = fill(5)
    compacted(lake)
    vacuumed(lake)
    for n in (6, 7, 8):
        add_batch(lake, n)
    savepoint = take(lake)
    for n in (9, 10, 11):
        add_batch(lake, n)
    compacted(lake)
    for each in owned(lake):
        DeltaTable(each.storage.uri()).create_checkpoint()
    before, deaths = all_rows(lake.layout), 0
    others = {*savepoint.tables} - {SILVER}
    while dies("vacuum.", 2, lambda: vacuumed(lake, SILVER)):
        deaths += 1
        upstream = Table(lake.layout.storage, SILVER, pipeline="tiny")
        upstream.refresh()
        upstream.require_intact()
        assert rows(lake.layout, SILVER) == before[SILVER]
        assert verify_savepoint(lake.layout, "tiny", savepoint, read=True, passing=others) == ()
        for after in (0, 8):
            found = batches(upstream, after, 11)
            assert found[-1].state.n == 11
            assert all(upstream.storage.exists(f.path) for c in found for f in c.files)
    assert deaths > 10
    assert list_log(lake.layout.storage.at(SILVER)).oldest > 0
    assert verify_savepoint(lake.layout, "tiny", savepoint, read=True) == ()
    check(lake, before)


@pytest.mark.parametrize("place", ["maintenance.merged", "silver.committed", "gold.committed"])
def test_compaction_that_dies_leaves_an_orphan_or_is_done(fill: Fill, place: str) -> None:
    lake = fill(6)
    before = all_rows(lake.layout)
    assert dies(place, 1, lambda: compacted(lake))
    check(lake, before)
    compacted(lake)
    check(lake, before)
    vacuumed(lake, keep_for=timedelta())
    check(lake, before)
    assert len([f for f in files_of(lake.layout) if "/data/" in f]) == 5
