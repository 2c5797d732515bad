"""What is being rebuilt, when it is ready, and what happens to it if a process dies or the tables
are taken back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from headgate.declaration.suites.model import Suite
from headgate.driver.errors import DefinitionChangedError
from headgate.driver.refusing import require_tables
from headgate.driver.task import RebuildRequest
from headgate.flow.operations.late_replay import replay_document
from headgate.history.savepoints import rebuilds
from headgate.history.savepoints.rebuilds import (
    FOLDER,
    Rebuild,
    begun_rebuild,
    continued_rebuild,
    publish_rebuild,
    rebuild_targets,
)
from headgate.history.savepoints.resets import ResetTarget
from headgate.history.savepoints.restore import restore_savepoint
from headgate.history.savepoints.store import settled_snapshot
from headgate.lake.tables.errors import FencedError, LogGapError
from headgate.lake.tables.history import batches
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.table import Table
from tests.support.decisions import reset_to
from tests.support.failing import dying
from tests.support.fake_stages import Record, without_spark
from tests.support.lake import WIDE, declared
from tests.support.lake import Lake as EngineLake
from tests.unit.history.savepoints.conftest import NOW, add_batch, begin, here, take
from tests.unit.history.savepoints.test_found import (
    BRONZE,
    GOLD,
    LATE,
    SILVER,
    control,
    job_of_silver,
    resets,
    tables,
)
from tests.unit.insight.ledger.conftest import Lake

BUILT = (SILVER, LATE, GOLD)


def process(lake: Lake, n: int, *paths: str, rows: int = 0) -> None:
    """Let the rebuild of some tables process bronze up to a batch. The tables have no files, which
    does not matter to the code that publishes them."""
    rebuild = begun_rebuild(control(lake).refresh())
    assert rebuild is not None
    for path in paths:
        table = rebuild.table(lake.layout, "tiny", path)
        table.epoch = table.refresh().epoch
        table.commit(table.state.advanced_to(n, NOW).counting({"rows": rows}))


def publish(lake: Lake, rebuild: Rebuild, epoch: int = 8) -> bool:
    """Publish a rebuild as bronze's job does, whose tables are fenced with an epoch."""
    place, owner = (lake.layout, lake.pipeline, rebuild), control(lake, epoch)
    return publish_rebuild(*place, owner, resets(lake), here(lake), NOW)


def count(lake: Lake, path: str) -> int:
    return int(DeltaTable(lake.layout.storage.uri(path)).to_pyarrow_table().num_rows)


def test_it_is_ready_when_it_has_what_the_current_tables_have(lake: Lake) -> None:
    rebuild = begin(lake, BUILT)
    assert rebuild_targets(lake.layout, lake.pipeline, rebuild) is None
    process(lake, 2, SILVER)
    process(lake, 1, LATE, GOLD)
    assert rebuild_targets(lake.layout, lake.pipeline, rebuild) is None, (
        "gold has not processed batch 2"
    )
    process(lake, 2, GOLD)
    found = rebuild_targets(lake.layout, lake.pipeline, rebuild)
    assert found is not None
    assert found.keys() == set(BUILT)
    assert found[LATE].version == 1, "it skips the batches that have no rows for it"


def test_only_a_version_that_its_gate_has_validated_is_published(lake: Lake) -> None:
    """A rebuild that is held stays at its previous step, which was not validated."""
    declared = lake.pipeline.gold["per_minute"]
    gated = {"per_minute": replace(declared, suite=Suite("s", ()))}
    pipeline = replace(lake.pipeline, gold=gated)
    rebuild = begin(lake, BUILT)
    process(lake, 2, *BUILT)
    assert rebuild_targets(lake.layout, lake.pipeline, rebuild) is not None
    assert rebuild_targets(lake.layout, pipeline, rebuild) is None

    table = rebuild.table(lake.layout, "tiny", GOLD)
    table.epoch = table.refresh().epoch

    def validated(n: int, operation: int) -> None:
        said = {"suite": "any", "at": 0, "n": n, "operation": operation}
        state = table.state.advanced_to(2, NOW, GoldPayload(gate=said))
        table.commit(replace(state, operation=1))
        table.refresh()

    for n, operation, is_ready in ((1, 1, False), (2, 0, False), (2, 1, True)):
        validated(n, operation)
        assert (rebuild_targets(lake.layout, pipeline, rebuild) is not None) == is_ready
    table.commit(table.state.held("fence", table.epoch))
    assert rebuild_targets(lake.layout, pipeline, rebuild) is not None


def operate(table: Table, number: int) -> None:
    """Commit an operation, which changes no batch id."""
    table.epoch = table.refresh().epoch
    table.commit(replace(table.state.held("operation", table.epoch), operation=number))


@pytest.mark.parametrize("path", [GOLD, LATE])
def test_it_is_not_ready_without_the_operations_of_the_current_tables(
    lake: Lake, path: str
) -> None:
    """An operation is a commit of its own at a batch that the rebuild has reached: its gate may
    hold it, or another job may still work on it. Readers would lose the rows of the operation."""
    rebuild = begin(lake, BUILT)
    process(lake, 2, *BUILT)
    assert rebuild_targets(lake.layout, lake.pipeline, rebuild) is not None
    operate(tables(lake)[path], 2)
    built = rebuild.table(lake.layout, "tiny", path)
    assert rebuild_targets(lake.layout, lake.pipeline, rebuild) is None
    operate(built, 1)
    assert rebuild_targets(lake.layout, lake.pipeline, rebuild) is None
    operate(built, 2)
    found = rebuild_targets(lake.layout, lake.pipeline, rebuild)
    assert found is not None
    assert found[path].version == 3, "the version after the last operation"


def test_a_version_that_its_gate_let_pass_is_not_published_without_a_held_operation(
    lake: Lake,
) -> None:
    gated = replace(lake.pipeline.gold["per_minute"], suite=Suite("s", ()))
    pipeline = replace(lake.pipeline, gold={"per_minute": gated})
    rebuild = begin(lake, BUILT)
    process(lake, 2, *BUILT)
    table = rebuild.table(lake.layout, "tiny", GOLD)
    table.epoch = table.refresh().epoch
    said = {"suite": "any", "at": 0, "n": 2, "operation": 0}
    table.commit(table.state.advanced_to(2, NOW, GoldPayload(gate=said)))
    assert rebuild_targets(lake.layout, pipeline, rebuild) is not None
    operate(tables(lake)[GOLD], 1)
    assert rebuild_targets(lake.layout, pipeline, rebuild) is None


def test_it_is_published_although_its_bronze_has_no_operations(lake: Lake) -> None:
    """A rebuilt bronze has other batches: the operations of before are void for it."""
    rebuild = begin(lake, (BRONZE, *BUILT, "quarantine/events"))
    process(lake, 1, SILVER, GOLD)
    table = rebuild.table(lake.layout, "tiny", BRONZE)
    table.commit(table.refresh().advanced_to(1, NOW, BronzePayload({"sequence": 5})))
    operate(tables(lake)[GOLD], 1)
    assert rebuild_targets(lake.layout, lake.pipeline, rebuild) is not None


def test_a_rebuild_carries_out_the_operations_and_is_published(tmp_path: Path) -> None:
    """It does not wait for ever for those of tables that it does not touch."""
    with without_spark():
        made = EngineLake(declared(tmp_path, WIDE), tmp_path / "root")
        made.land([Record(0)], [Record(1)], [Record(2)])
        for end in (1, 2):
            made.ingest(end)
            made.catch_up()
            made.drain()
        made.operate("late_replay", **replay_document("per_hour"))
        made.ingest(3)
        made.catch_up()
        paths = [
            f"{kind}/{name}" for name in ("per_hour", "per_minute") for kind in ("late", "gold")
        ]
        before = [made.runtime.table(path).refresh() for path in paths]
        assert [state.operation for state in before] == [3, 3, 0, 2]
        made.anew = RebuildRequest((SILVER, "silver/other"))
        made.start()
        made.catch_up()
        after = [made.runtime.table(path).refresh() for path in paths]
    assert [state.generation for state in after] == [1, 1, 1, 1]
    assert [state.operation for state in after] == [3, 3, 0, 2]
    assert [state.total for state in after] == [state.total for state in before]


def test_all_tables_are_taken_at_one_batch(lake: Lake) -> None:
    """The jobs of the other layers go on while bronze's job looks at the tables."""
    rebuild = begin(lake, BUILT)
    for n in (1, 2, 3):
        process(lake, n, SILVER)
    process(lake, 2, GOLD)
    process(lake, 3, LATE)
    found = rebuild_targets(lake.layout, lake.pipeline, rebuild)
    assert found is not None
    assert {path: target.version for path, target in found.items()} == {SILVER: 2, LATE: 0, GOLD: 1}


def test_tables_that_pass_each_other_are_not_published(lake: Lake) -> None:
    """Silver took batches 1 to 3 in one step: there is no version of it at batch 2."""
    rebuild = begin(lake, BUILT)
    process(lake, 3, SILVER)
    process(lake, 2, GOLD)
    assert rebuild_targets(lake.layout, lake.pipeline, rebuild) is None


def test_bronze_is_published_when_it_has_read_as_far(lake: Lake) -> None:
    rebuild = begin(lake, (BRONZE, *BUILT, "quarantine/events"))
    current = tables(lake)[BRONZE]
    current.epoch = current.refresh().epoch
    current.commit(current.state.advanced_to(3, NOW, BronzePayload({"sequence": 5})))
    table = rebuild.table(lake.layout, "tiny", BRONZE)
    table.commit(table.refresh().advanced_to(1, NOW, BronzePayload({"sequence": 4})))
    process(lake, 1, SILVER, GOLD)
    assert rebuild_targets(lake.layout, lake.pipeline, rebuild) is None
    table.commit(table.refresh().advanced_to(2, NOW, BronzePayload({"sequence": 5})))
    assert rebuild_targets(lake.layout, lake.pipeline, rebuild) is None, (
        "silver has not processed it"
    )
    process(lake, 2, SILVER, GOLD)
    assert rebuild_targets(lake.layout, lake.pipeline, rebuild) is not None


def test_whoever_opens_the_tables_next_ends_what_was_asked_for(lake: Lake) -> None:
    rebuild = begin(lake, BUILT)
    process(lake, 2, *BUILT, rows=7)
    before = count(lake, GOLD)
    with dying("reset.intended"):
        publish(lake, rebuild, 7)
    assert count(lake, GOLD) == before > 0
    seen = tables(lake, 8)
    job = resets(lake)
    assert [p for p in seen if job.awaits(seen[p])] == [GOLD, LATE, SILVER]
    job.carry_out(seen.values(), NOW)
    assert {seen[path].refresh().total["rows"] for path in BUILT} == {7}
    assert begun_rebuild(control(lake).refresh()) is None
    assert settled_snapshot(lake.layout, lake.pipeline).bronze["events"].n == 2


def test_a_job_that_runs_takes_it_over(lake: Lake) -> None:
    """Bronze's job publishes the rebuild; silver's job goes on with its new table in the same
    run."""
    tables(lake, 8)
    job: Any = job_of_silver(lake)
    job.open(9, NOW)
    job.rebuild = rebuild = begin(lake, BUILT)
    job._declared, job.bronze, job._rebuilt_tables = job.stages, {}, {}
    process(lake, 2, *BUILT, rows=7)
    assert publish(lake, rebuild)
    job.catch_up(NOW)
    assert tables(lake)[SILVER].refresh().total["rows"] == 7
    assert job.rebuild is None


def test_a_restore_makes_it_void(lake: Lake) -> None:
    savepoint = take(lake)
    begin(lake, BUILT)
    add_batch(lake, 3)
    restore_savepoint(lake.layout, lake.pipeline, savepoint, 9, NOW)
    assert begun_rebuild(control(lake).refresh()) is None


def test_it_is_not_continued_by_another_declaration(lake: Lake) -> None:
    rebuild = begin(lake, (LATE, GOLD))
    decisions = control(lake).refresh()
    assert continued_rebuild(decisions, lake.pipeline) == rebuild
    definitions = {**lake.pipeline.definitions, GOLD: "another"}
    assert continued_rebuild(decisions, replace(lake.pipeline, definitions=definitions)) is None


def test_a_later_rebuild_takes_the_place_of_an_earlier_one(lake: Lake) -> None:
    begin(lake, (LATE, GOLD))
    later = Rebuild(f"{FOLDER}/8", 1, {SILVER: "digest"}, "asked for by hand")
    lake.control.refresh()
    rebuilds.decide_rebuild(lake.control, later, here(lake), NOW)
    assert begun_rebuild(control(lake).refresh()) == later


def test_what_is_void_is_removed_and_what_is_under_way_stays(lake: Lake) -> None:
    rebuild = begin(lake, (LATE, GOLD))
    storage = lake.layout.storage
    other = Table(storage, LATE, pipeline="tiny", log=f"{FOLDER}/3/{LATE}")
    other.create(lake._schema(LATE), "digest", time_column="time")
    owner = control(lake, 8).table
    rebuilds.remove_void_rebuilds(lake.layout, owner, rebuild)
    assert storage.folders(FOLDER) == ("7",)
    tables(lake, 9)
    with pytest.raises(FencedError):
        rebuilds.remove_void_rebuilds(lake.layout, owner, None)
    assert storage.folders(FOLDER) == ("7",)
    rebuilds.remove_void_rebuilds(lake.layout, control(lake, 10).table, None)
    assert storage.folders(FOLDER) == ()


def test_who_reads_batches_of_the_former_table_is_told_that_they_are_gone(lake: Lake) -> None:
    """A rebuild groups batches in its own way, so its files have rows that this reader has read."""
    rebuild = begin(lake, BUILT)
    process(lake, 2, *BUILT)
    seen = tables(lake, 8)
    assert publish(lake, rebuild)
    resets(lake).carry_out(seen.values(), NOW)
    assert batches(seen[SILVER], 0, 2)
    with pytest.raises(LogGapError, match="batches 2 to 2"):
        batches(seen[SILVER], 1, 2)


def test_a_reset_that_is_open_stays_open(lake: Lake) -> None:
    """Silver's job has not carried it out when a rebuild of gold is published."""
    reset_to(control(lake, 8), {SILVER: ResetTarget()}, NOW)
    rebuild = begin(lake, (LATE, GOLD))
    process(lake, 2, LATE, GOLD, rows=7)
    assert publish(lake, rebuild)
    seen, job = tables(lake), resets(lake)
    assert [p for p in seen if job.awaits(seen[p])] == [GOLD, LATE, SILVER]
    job.carry_out(seen.values(), NOW)
    found = [(seen[path].refresh().n, seen[path].state.generation) for path in (SILVER, GOLD)]
    assert found == [(0, 1), (2, 2)]


def test_a_log_that_is_gone_is_told_by_name(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    rebuild = begin(lake, BUILT)
    process(lake, 2, *BUILT)
    seen = tables(lake, 8)
    assert publish(lake, rebuild)
    lake.layout.storage.remove(rebuild.folder)
    with pytest.raises(LogGapError, match="the log of this rebuild is gone"):
        resets(lake).carry_out(seen.values(), NOW)


def test_a_start_goes_on_with_it_though_the_current_table_is_of_another_declaration(
    lake: Lake,
) -> None:
    definitions = {**lake.pipeline.definitions, GOLD: "new", LATE: "new"}
    lake.pipeline = replace(lake.pipeline, definitions=definitions)
    with pytest.raises(DefinitionChangedError):
        require_tables(lake.pipeline, lake.layout)
    begin(lake, (LATE, GOLD))
    require_tables(lake.pipeline, lake.layout)
