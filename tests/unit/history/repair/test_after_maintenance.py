"""Damaged tables that were compacted and vacuumed are rebuilt from the data left upstream."""

from __future__ import annotations

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import pytest

from headgate.history.maintenance.compaction import CompactionLimits
from headgate.history.maintenance.steps import compact_tables, vacuum_tables
from headgate.insight.ledger import balance
from headgate.lake.tables.snapshot import tables_of
from tests.support.damage import harm
from tests.support.rounds import some
from tests.unit.history.repair.conftest import ASIDE, BRONZE, FILES, GOLD, LATE, SILVER, Lake

pytestmark = pytest.mark.long

CASES = list(product(("data", "entry"), (BRONZE, ASIDE, SILVER[0], LATE[0], GOLD[0], FILES)))


def maintain(lake: Lake) -> None:
    lake.open()
    tables = list(tables_of(lake.layout, "tiny"))
    for table in tables:
        table.fence(lake.epoch)
    later = datetime.now(UTC) + timedelta(days=1)  # files have the times of the wall clock
    list(
        compact_tables(
            lake.layout,
            lake.pipeline,
            tables,
            nullcontext,
            lambda: later,
            CompactionLimits(least=2),
        )
    )
    list(vacuum_tables(lake.layout, lake.pipeline, tables, timedelta(), nullcontext, lambda: later))


@pytest.mark.parametrize(("part", "path"), some(CASES, 5))
def test_repaired_from_what_is_left(lake: Lake, tmp_path: Path, path: str, part: str) -> None:
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
    assert (plan.refusal is not None) == (path == FILES or (part, path) == ("data", BRONZE))
    if plan.refusal is not None:
        return
    lake.repair(plan)
    assert not lake.examine(tmp_path / "after").is_needed
    assert balance(lake.layout, lake.pipeline).balanced
    lake.open()
    lake.run()
    assert lake.all_rows() == before
    assert [file[0] for file in lake.recorded()][:11] == list(range(1, 12))
