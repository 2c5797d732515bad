"""Tables that are no longer declared, while the others go back or are built anew."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pytest

from headgate.declaration.digest import meaning_of
from headgate.declaration.kinds import kind_of
from headgate.driver.opening import _finish_undeclared
from headgate.driver.runtime import PipelineRuntime
from headgate.history.savepoints.declaration_changes import DeployedTable, compare_declarations
from headgate.history.savepoints.resets import (
    ResetTarget,
    reset_table,
    undeclared_tables,
    undeclared_targets,
)
from headgate.history.savepoints.restore import restore_savepoint
from headgate.history.savepoints.store import create_savepoint
from headgate.lake.tables.arrow import stage_arrow
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.snapshot import tables_of
from headgate.lake.tables.table import Table
from tests.support.decisions import reset_to, resets_of
from tests.support.failing import dying
from tests.unit.history.savepoints.conftest import NOW, add_batch, take
from tests.unit.history.savepoints.test_found import BRONZE, GOLD, SILVER, tables
from tests.unit.insight.ledger.conftest import Lake, silver

OLD = ("silver/of_old", "gold/of_old", "late/of_old")
KEPT = ResetTarget(keep=True)


def add_undeclared(lake: Lake, path: str, n: int = 2) -> Table:
    """Create a table like a declared one. It has processed ``n`` batches and has a row."""
    table = Table(lake.layout.storage, path, pipeline="tiny")
    schema = lake._schema(SILVER)
    table.create(schema, "digest", time_column="time")
    state = table.refresh().advanced_to(n, NOW)
    state = state.counting({kind_of(path).counted_as or "": 1})
    rows = pa.Table.from_pylist([silver(4) | {"time": NOW}], schema)
    table.commit(state, stage_arrow(table, state, rows, time_column="time"))
    return table


@pytest.mark.parametrize(
    ("again", "asked"),
    [
        ({BRONZE, SILVER, GOLD}, dict.fromkeys(OLD, KEPT)),
        ({SILVER, GOLD}, dict.fromkeys(OLD[1:], KEPT)),
        ({GOLD}, {}),
    ],
)
def test_what_lost_the_table_above_it_loses_its_place(
    again: set[str], asked: dict[str, ResetTarget]
) -> None:
    assert undeclared_targets(OLD, again) == asked


def test_rows_stay_where_a_place_is_lost(lake: Lake) -> None:
    table = tables(lake, 7)[GOLD]
    before = table.refresh()
    files = live_files(table.handle)
    reset_table(table, KEPT, before.generation + 1, NOW)
    after = table.refresh()
    assert live_files(table.handle) == files
    assert (after.n, after.definition, dict(after.total)) == (0, "", {})
    table.require_intact()
    assert action(lake, after.definition) == "rebuild"


def action(lake: Lake, definition: str) -> str:
    found = compare_declarations(
        meaning_of(lake.pipeline),
        lake.pipeline.definitions,
        {GOLD: DeployedTable(definition, None)},
        can_reread=True,
    )
    return next(plan.action for plan in found if plan.table == GOLD)


def test_a_younger_one_keeps_its_rows_in_a_restore(lake: Lake) -> None:
    savepoint = take(lake)
    add_undeclared(lake, OLD[0])
    restore_savepoint(lake.layout, lake.pipeline, savepoint, 7, NOW)
    table = tables(lake)[OLD[0]]
    state = table.refresh()
    assert (state.n, state.definition) == (0, "")
    assert sum(file.rows for file in live_files(table.handle)) == 1


def test_a_restore_that_died_is_finished_for_them_too(lake: Lake) -> None:
    """No job owns them, so bronze's job does it. Otherwise no savepoint could be taken."""
    add_undeclared(lake, OLD[0])
    savepoint = take(lake)
    add_batch(lake, 3)
    with dying("reset.intended"):
        restore_savepoint(lake.layout, lake.pipeline, savepoint, 7, NOW)
    owned = {t.name: t for t in tables_of(lake.layout, "tiny") if t.name not in OLD}
    for table in owned.values():
        table.fence(8)
    resets = resets_of(lake.layout.storage, "tiny")
    resets.carry_out(owned.values(), NOW)
    job = SimpleNamespace(layers=("bronze",), resets=resets, pipeline=lake.pipeline)
    assert resets.awaits(tables(lake)[OLD[0]])
    _finish_undeclared(cast(PipelineRuntime, job), lake.layout, 8, NOW)
    assert not resets.awaits(tables(lake)[OLD[0]])
    create_savepoint(lake.layout, lake.pipeline, NOW)


def test_only_what_awaits_a_reset_is_written_to(lake: Lake) -> None:
    control, resets = lake.control, resets_of(lake.layout.storage, "tiny")
    table = add_undeclared(lake, OLD[0])
    reset_to(control, {GOLD: ResetTarget()}, NOW)
    assert [t.name for t in undeclared_tables(lake.layout, lake.pipeline)] == [OLD[0]]
    table.refresh()
    before = table.version
    job = SimpleNamespace(layers=("bronze",), resets=resets, pipeline=lake.pipeline)
    _finish_undeclared(cast(PipelineRuntime, job), lake.layout, 8, NOW)
    table.refresh()
    assert table.version == before
