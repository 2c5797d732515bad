"""Faults that the model in tests/property/protocol has found, tested on real tables."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from deltalake import DeltaTable

from headgate.declaration.graph import graph_of
from headgate.driver.damaged_tables import DamagedTables
from headgate.driver.runtime import PipelineRuntime
from headgate.driver.stages import Stages
from headgate.errors import HeadgateError
from headgate.history.savepoints.errors import SavepointError
from headgate.history.savepoints.rebuilds import publish_rebuild
from headgate.history.savepoints.resets import Resets, ResetTarget
from headgate.history.savepoints.restore import restore_savepoint
from headgate.history.savepoints.savepoint import Savepoint
from headgate.lake.tables.decisions import ControlTable
from headgate.lake.tables.errors import FencedError, LogGapError
from headgate.lake.tables.history import batches
from headgate.lake.tables.snapshot import tables_of
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table
from tests.support.decisions import append, control_of, reset_to, resets_of
from tests.support.failing import dying
from tests.unit.history.savepoints.conftest import NOW, add_batch, begin, here, take
from tests.unit.insight.ledger.conftest import SCHEMAS, Lake, bronze, silver

BRONZE, QUARANTINE, SILVER = "bronze/events", "quarantine/events", "silver/good"
LATE, GOLD = "late/per_minute", "gold/per_minute"
FILES = "_headgate/files/events"


def tables(lake: Lake, epoch: int = 0) -> dict[str, Table]:
    """The tables as another process sees them. With an epoch, it fences them first."""
    found = {table.name: table for table in tables_of(lake.layout, "tiny")}
    for table in found.values() if epoch else ():
        table.fence(epoch)
    return found


def control(lake: Lake, epoch: int = 0) -> ControlTable:
    """The decisions as another process sees them. With an epoch, it fences them first."""
    return control_of(lake.layout.storage, "tiny", epoch)


def fenced(lake: Lake, epoch: int) -> ControlTable:
    """The decisions of a process that has fenced every table."""
    tables(lake, epoch)
    return control(lake, epoch)


def resets(lake: Lake) -> Resets:
    return resets_of(lake.layout.storage, "tiny")


def offsets(lake: Lake, path: str, column: str) -> set[int]:
    return set(DeltaTable(lake.layout.storage.uri(path)).to_pyarrow_table()[column].to_pylist())


@pytest.mark.slow
def test_what_was_built_from_another_past_of_bronze_is_not_brought_back(lake: Lake) -> None:
    first = take(lake)
    add_batch(lake, 3)
    second = take(lake, 1)
    restore_savepoint(lake.layout, lake.pipeline, first, 7, NOW, reread=True)
    # The source is read again, in other batches: the old records of batch 3 are now in 4.
    for n, first_offset in ((3, 90), (4, 9)):
        rows = [bronze(first_offset + i) for i in range(3)]
        lake.commit(BRONZE, n, rows, {"read": 3, "duplicate": 0, "differing": 0})
    try:
        restore_savepoint(lake.layout, lake.pipeline, second, 8, NOW)
    except SavepointError:
        return
    # Silver is after a batch 3 that it never read, and will get offsets 9 to 11 a second time.
    assert tables(lake)[SILVER].refresh().n == 3
    held = offsets(lake, SILVER, "_offset") | offsets(lake, QUARANTINE, "offset")
    assert held == {3, 4, 5, 6, 7, 8, 90, 91, 92}


def in_order(savepoint: Savepoint) -> bool:
    """No table is ahead of the one that feeds it."""
    gold, silver_, top = (savepoint.tables[path].n for path in (GOLD, SILVER, BRONZE))
    return gold <= silver_ <= top


@pytest.mark.slow
def test_no_savepoint_is_taken_of_tables_that_await_a_reset(lake: Lake) -> None:
    """Bronze's job has taken over from a restore that died, and starts before the other jobs."""
    savepoint = take(lake)
    add_batch(lake, 3)
    with dying("reset.intended"):
        restore_savepoint(lake.layout, lake.pipeline, savepoint, 7, NOW, reread=True)
    try:
        torn = take(lake, 1)
    except HeadgateError:
        return
    assert in_order(torn)


def test_what_a_savepoint_of_half_a_restore_gives_back_can_go_on(lake: Lake) -> None:
    """Silver's job has finished its part of the restore, but gold's job has not begun."""
    savepoint = take(lake)
    add_batch(lake, 3)
    with dying("reset.intended"):
        restore_savepoint(lake.layout, lake.pipeline, savepoint, 7, NOW)
    seen = tables(lake)
    resets(lake).carry_out([seen[QUARANTINE], seen[SILVER]], NOW)
    try:
        torn = take(lake, 1)
    except HeadgateError:
        return
    resets(lake).carry_out([seen[LATE], seen[GOLD]], NOW)
    restore_savepoint(lake.layout, lake.pipeline, torn, 8, NOW)
    counts = {"read": 3, "duplicate": 0, "differing": 0}
    lake.commit(BRONZE, 4, [bronze(12), bronze(13), bronze(14)], counts)
    lake.commit(SILVER, 4, [silver(10), silver(11), silver(13), silver(14)], {"silver": 4})
    gold = tables(lake)[GOLD].refresh()
    assert batches(tables(lake)[SILVER], gold.n, 4)


def job_of_silver(lake: Lake) -> PipelineRuntime:
    """Silver's own job as far as it concerns its tables, without Spark."""
    own = tables(lake)
    job: Any = PipelineRuntime.__new__(PipelineRuntime)
    stages: Any = Stages.__new__(Stages)
    stages.bronze, stages.gold = {"events": own[BRONZE].reader()}, {}
    silver = SimpleNamespace(catch_up=lambda *_: None, has_processed=lambda _: True, silver={})
    stages.silver = {"events": silver}
    job.layers, job.publications, job.kept = ("silver",), (), {}
    job.pipeline, job.graph = lake.pipeline, graph_of(lake.pipeline)
    job.rebuild, job._rebuilt, job._held = None, None, {}
    job.damaged = DamagedTables(lake.pipeline, job.layers)
    stages._graph = job.graph
    stages._control, stages._anew, stages._held = control(lake), frozenset(), {}
    stages._left_out = frozenset()
    job.control, job.resets = control(lake), resets(lake)
    job._current, job.stages = own, stages
    job._written = {path: own[path] for path in (QUARANTINE, SILVER)}
    job.create = job.require_declared = lambda: None
    return cast(PipelineRuntime, job)


def test_a_job_that_runs_ends_when_a_paused_restore_asks_for_resets(lake: Lake) -> None:
    """The restore was paused after its fences for longer than its lease, and silver's job took over
    its own tables. The decision is not refused, because the restore still owns the decisions."""
    savepoint = take(lake)
    add_batch(lake, 3)
    paused = fenced(lake, 7)
    job = job_of_silver(lake)
    job.open(8, NOW)
    reset_to(paused, savepoint.targets(), NOW)
    with pytest.raises(FencedError, match="requested a reset"):
        job.catch_up(NOW)
    assert job.resets.awaits(tables(lake)[SILVER])
    job = job_of_silver(lake)
    job.open(9, NOW)
    job.catch_up(NOW)
    assert not job.resets.awaits(tables(lake)[SILVER])


def test_a_gap_behind_a_reset_that_is_asked_for_is_no_damage(lake: Lake) -> None:
    """The restore takes bronze back after the job has read the generation and before its step."""
    savepoint = take(lake)
    add_batch(lake, 3)
    paused = fenced(lake, 7)
    job: Any = job_of_silver(lake)
    job.open(8, NOW)

    def step(*_: object) -> None:
        reset_to(paused, {BRONZE: savepoint.bronze["events"].target, **savepoint.targets()}, NOW)
        raise LogGapError("batches 3 to 3 are not in the table's log", "headgate repair")

    job.stages.silver["events"].catch_up = step
    with pytest.raises(FencedError, match="requested a reset"):
        job.catch_up(NOW)


def test_a_gap_where_nothing_goes_back_is_damage(lake: Lake) -> None:
    job: Any = job_of_silver(lake)
    job.open(8, NOW)

    def step(*_: object) -> None:
        raise LogGapError("batches 3 to 3 are not in the table's log", "headgate repair")

    job.stages.silver["events"].catch_up = step
    with pytest.raises(LogGapError):
        job.catch_up(NOW)


def test_quarantine_never_goes_back_behind_silver(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same, a moment earlier: silver's job has looked for resets of quarantine but not yet of
    silver. Otherwise the next start loses what was quarantined from batch 3 on."""
    savepoint = take(lake)
    add_batch(lake, 3)
    paused = fenced(lake, 7)
    own = tables(lake)
    for path in (QUARANTINE, SILVER):
        own[path].fence(8)
    job, look = resets(lake), own[QUARANTINE].refresh
    reset_to(paused, savepoint.targets(), NOW)
    job.carry_out([own[QUARANTINE], own[SILVER]], NOW)

    def looked_at() -> State:
        state = look()
        if paused.known.generation == 1:
            reset_to(paused, savepoint.targets(), NOW)
        return state

    monkeypatch.setattr(own[QUARANTINE], "refresh", looked_at)
    job.carry_out([own[QUARANTINE], own[SILVER]], NOW)
    assert paused.known.generation == 2
    assert job.awaits(own[QUARANTINE]) == job.awaits(own[SILVER])


def test_bronze_goes_back_though_a_restore_without_bronze_followed(lake: Lake) -> None:
    """The restore with bronze died after its decision. Its row says that bronze went back."""
    savepoint = take(lake)
    add_batch(lake, 3)
    with dying("reset.intended"):
        restore_savepoint(lake.layout, lake.pipeline, savepoint, 7, NOW, reread=True)
    restore_savepoint(lake.layout, lake.pipeline, savepoint, 8, NOW)
    seen = tables(lake)
    assert {seen[path].refresh().n for path in (BRONZE, QUARANTINE, SILVER, LATE, GOLD)} == {2}


def test_a_table_that_an_older_reset_names_is_torn(lake: Lake) -> None:
    """A rebuild of silver was published after the reset of gold was decided."""
    owner = control(lake, 7)
    reset_to(owner, {GOLD: ResetTarget(), LATE: ResetTarget()}, NOW)
    reset_to(owner, {SILVER: ResetTarget()}, NOW)
    seen = tables(lake, 7)
    resets(lake).carry_out([seen[SILVER]], NOW)
    with pytest.raises(HeadgateError, match=LATE):
        take(lake, 1)


@pytest.mark.slow
def test_a_restore_brings_all_tables_back_though_an_older_one_is_half_done(lake: Lake) -> None:
    """Silver's job has finished its part of a restore that died and gone on; gold awaits its
    reset."""
    savepoint = take(lake)
    add_batch(lake, 3)
    with dying("reset.intended"):
        restore_savepoint(lake.layout, lake.pipeline, savepoint, 7, NOW)
    seen = tables(lake)
    resets(lake).carry_out([seen[QUARANTINE], seen[SILVER]], NOW)
    lake.commit(SILVER, 3, [silver(10), silver(11)], {"silver": 2})
    restore_savepoint(lake.layout, lake.pipeline, savepoint, 8, NOW)
    assert {tables(lake)[path].refresh().n for path in (QUARANTINE, SILVER, LATE, GOLD)} == {2}


def test_a_table_that_is_not_declared_goes_with_the_bronze_it_was_built_from(lake: Lake) -> None:
    """If it were declared again, it would go on after batch 2 of a bronze that it never read."""
    path = "silver/of_old"
    old = Table(lake.layout.storage, path, pipeline="tiny")
    old.create(lake._schema(SILVER), "digest", time_column="time")
    old.commit(old.refresh().advanced_to(2, NOW))
    seen = tables(lake, 7)
    rebuild = begin(lake, SCHEMAS.keys() - {FILES})
    place, owner, job = (lake.layout, lake.pipeline, rebuild), control(lake, 7), resets(lake)
    assert publish_rebuild(*place, owner, job, here(lake), NOW)
    job.carry_out(seen.values(), NOW)
    assert seen[BRONZE].refresh().n == seen[SILVER].refresh().n == 0
    assert seen[path].refresh().n == 0


def test_an_operation_that_is_decided_while_a_savepoint_is_taken_is_not_part_of_it(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may lie beyond the batches of the savepoint. After a restore with bronze, it must not take
    place after another batch of the same number."""
    driver = control(lake, 7)
    append(driver, "drain", {}, here(lake), NOW)
    look = Table.refresh

    def looked_at(table: Table) -> State:
        state = look(table)
        if table.name == BRONZE:
            monkeypatch.setattr(Table, "refresh", look)
            add_batch(lake, 3)
            append(driver, "drain", {}, here(lake), NOW)
        return state

    monkeypatch.setattr(Table, "refresh", looked_at)
    savepoint = take(lake)
    assert control(lake).refresh().last == 2
    assert (savepoint.decision, savepoint.bronze["events"].n) == (1, 2)
    restore_savepoint(lake.layout, lake.pipeline, savepoint, 8, NOW, reread=True)
    (left,) = control(lake).refresh().operations_of("events")
    assert (left.number, left.n) == (1, 2)
