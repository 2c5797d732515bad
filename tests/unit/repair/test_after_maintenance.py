"""Damage of tables that were compacted and vacuumed: what is left to go back to is a savepoint, or
the beginning."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import pytest

from headgate.ledger import balance
from headgate.maintenance.compaction import Limits
from headgate.maintenance.work import compact, vacuum_tables
from headgate.tables.snapshot import tables_of
from tests.support.damage import harm
from tests.support.rounds import some
from tests.unit.repair.conftest import ASIDE, BRONZE, FILES, GOLD, LATE, SILVER, Lake

pytestmark = pytest.mark.long

TABLES = (BRONZE, ASIDE, *SILVER, *LATE, *GOLD, FILES)
CASES = list(
    product(("data", "entry"), (BRONZE, ASIDE, SILVER[0], LATE[0], GOLD[0], FILES), (True, False))
)


def maintain(lake: Lake, vacuumed: Sequence[str] = TABLES) -> None:
    lake.open()
    tables = list(tables_of(lake.layout, "tiny"))
    for table in tables:
        table.fence(lake.epoch)
    later = datetime.now(UTC) + timedelta(days=1)  # files have the times of the wall clock
    list(compact(lake.layout, lake.pipeline, tables, nullcontext, lambda: later, Limits(least=2)))
    some = [table for table in tables if table.name in vacuumed]
    list(vacuum_tables(lake.layout, lake.pipeline, some, timedelta(), nullcontext, lambda: later))


@pytest.mark.parametrize(("part", "path", "with_savepoint"), some(CASES, 5))
def test_mended_from_what_is_left(
    lake: Lake, tmp_path: Path, path: str, part: str, with_savepoint: bool
) -> None:
    if with_savepoint:
        lake.take()
    lake.run(3)
    maintain(lake)
    lake.open()
    lake.run(2)
    before = lake.all_rows()
    if part == "data":
        harm(max(lake.data_files(path), key=lambda file: file.stat().st_size), "flipped")
    else:
        harm(lake.entries(path)[-1], "truncated")
    plan = lake.examine(tmp_path / "before")
    assert plan.is_needed
    lake.mend(plan)
    assert not lake.examine(tmp_path / "after").is_needed
    assert balance(lake.layout, lake.pipeline).balanced
    lake.open()
    lake.run()
    assert lake.all_rows() == before
    assert [file[0] for file in lake.files()][:11] == list(range(1, 12))


def test_batches_that_were_merged_cannot_be_told_apart(lake: Lake, tmp_path: Path) -> None:
    """Gold has its old files still, silver has not: gold cannot go back to the middle of one of
    silver's merged files, only to the beginning."""
    lake.run(3)
    (final,) = (f for f in lake.data_files(GOLD[0]) if "0-5-" in str(f))
    maintain(lake, SILVER)
    lake.open()
    before = lake.all_rows()
    harm(final, "flipped")
    plan = lake.examine(tmp_path / "before")
    assert {path for path, target in plan.targets.items() if target.version is None} == {
        GOLD[0],
        LATE[0],
    }
    lake.mend(plan)
    assert not lake.examine(tmp_path / "after").is_needed
    lake.open()
    lake.run()
    assert lake.all_rows() == before
