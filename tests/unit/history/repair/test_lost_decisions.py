"""Decisions are damaged, or bronze has lost batches, so savepoints may not fit any more."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from headgate.history.savepoints.errors import SavepointError
from headgate.history.savepoints.restore import restore_savepoint
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import create_savepoint
from headgate.lake.tables.decisions import DECISIONS, REPLAY, Decisions
from headgate.lake.tables.errors import LogGapError
from tests.support.damage import HARMS, harm
from tests.support.decisions import append, at, control_of, reset_to
from tests.unit.history.repair.conftest import BRONZE, BUILT, GOLD, LATE, NOW, Lake
from tests.unit.history.repair.test_damage import repaired

pytestmark = pytest.mark.slow


def decisions(lake: Lake) -> Decisions:
    return control_of(lake.layout.storage, "tiny").refresh()


def restore(lake: Lake, savepoint: Savepoint, *, reread: bool = False) -> None:
    lake.epoch += 1
    place = lake.layout, lake.pipeline, savepoint, lake.epoch, NOW
    restore_savepoint(*place, reread=reread)
    lake.open()


def take(lake: Lake, minutes: int) -> Savepoint:
    return create_savepoint(lake.layout, lake.pipeline, NOW + timedelta(minutes=minutes))


@pytest.mark.parametrize("how", ["truncated", "missing"])
def test_a_savepoint_of_lost_batches_is_not_restored_over_other_ones(
    lake: Lake, tmp_path: Path, how: str
) -> None:
    earlier = take(lake, 1)
    later = take(lake.run(1), 2)
    harm(lake.entries(BRONZE)[-1], how)
    lake.repair(lake.examine(tmp_path))
    lake.open()
    assert earlier.is_of_lineage(decisions(lake))
    assert not later.is_of_lineage(decisions(lake))
    lake.land_more(1)
    lake.ingest()  # batch 7 is another one: it has two files
    lake.catch_up()
    before = lake.all_rows()
    with pytest.raises(SavepointError, match="cannot be restored"):
        restore(lake, later)
    lake.open()
    assert take(lake, 3).is_of_lineage(decisions(lake))
    restore(lake, earlier)
    lake.catch_up()
    assert lake.all_rows() == before


def test_an_operation_at_a_lost_batch_is_void(lake: Lake, tmp_path: Path) -> None:
    lake.drain()
    lake.run(1)
    lake.drain()
    for entry in lake.entries(BRONZE)[-1:]:
        harm(entry, "truncated")
    lake.repair(lake.examine(tmp_path))
    lake.open()
    assert [each.number for each in lake.operations()] == [1]
    lake.run()
    assert lake.tables[GOLD[0]].refresh().operation == 1


@pytest.mark.parametrize("how", HARMS)
def test_the_last_decision_is_lost(lake: Lake, tmp_path: Path, how: str) -> None:
    """Gold has carried it out, so gold is rebuilt without it."""
    before = lake.all_rows()
    lake.drain()
    assert lake.all_rows() != before
    harm(lake.entries(DECISIONS)[-1], how)
    repaired(lake, tmp_path)
    assert lake.operations() == ()
    assert lake.all_rows() == before
    lake.drain()
    assert [each.number for each in lake.operations()] == [2], "the repair was the first"


@pytest.mark.parametrize("what", ["file", "log"])
def test_all_decisions_are_lost(lake: Lake, tmp_path: Path, what: str) -> None:
    """All that is built from bronze is rebuilt. Bronze stays, and its batches with it."""
    before = lake.all_rows()
    restore(lake, take(lake, 1), reread=True)
    lake.run()
    lake.drain()
    old = take(lake, 2)
    if what == "file":
        harm(lake.data_files(DECISIONS)[0], "flipped")
    else:
        for entry in lake.entries(DECISIONS):
            harm(entry, "emptied")
    plan = lake.examine(tmp_path / "look")
    assert set(plan.targets) == lake.tables.keys() & {*BUILT}
    assert any(DECISIONS in each and "begun again" in each for each in plan.descriptions)
    repaired(lake, tmp_path)
    assert lake.all_rows() == before
    assert decisions(lake).generation == 2
    with pytest.raises(SavepointError, match=DECISIONS):
        restore(lake, old)
    lake.open()
    new = take(lake, 3)
    lake.run(1)
    restore(lake, new)
    lake.run()
    assert {lake.tables[path].refresh().n for path in (BRONZE, GOLD[0])} == {7}


@pytest.mark.parametrize("lost", [1, 9])
def test_bronze_forgets_the_numbers_of_lost_decisions(
    lake: Lake, tmp_path: Path, lost: int
) -> None:
    """Else a later replay would count as ingested before it is. Here it has ingested one."""
    lake.drain()
    lake.drain()
    control, n = control_of(lake.layout.storage, "tiny", lake.epoch), lake.position
    document = {"source": "events", "generation": 0, "before": 0, "rows": 1, "reason": "a test"}
    number = append(control, REPLAY, document, at(events=n), NOW).number
    held = lake.bronze.refresh()
    done = replace(held.advanced_to(held.n + 1, NOW), operation=number)
    lake.bronze.commit(done.counting({"read": 0, "duplicate": 0, "differing": 0}))
    lake.catch_up()
    for entry in lake.entries(DECISIONS)[-lost:]:
        harm(entry, "missing" if lost == 1 else "emptied")
    with pytest.raises(LogGapError):
        lake.open()
    plan = lake.examine(tmp_path / "look")
    assert plan.is_damage
    assert plan.replayed == {"events"}
    lake.repair(plan)
    lake.open()
    assert lake.bronze.refresh().operation <= decisions(lake).last
    assert not lake.examine(tmp_path / "again").is_needed


def test_a_reset_of_bronze_is_decided_again_with_its_lineage(lake: Lake, tmp_path: Path) -> None:
    """A restore with bronze died, and a file of its savepoint is damaged."""
    earlier = take(lake, 1)
    later = take(lake.run(2), 2)
    bronze = earlier.bronze["events"]
    targets = {**earlier.targets(), BRONZE: bronze.target}
    reset_to(lake.runtime.control, targets, NOW, back_to={"events": bronze.batch})
    (file,) = (f for f in lake.data_files(GOLD[0]) if "0-5-" in str(f))
    harm(file, "flipped")
    plan = lake.examine(tmp_path)
    assert {GOLD[0], LATE[0], BRONZE} <= plan.targets.keys()
    lake.repair(plan)
    lake.open()
    assert lake.tables[BRONZE].refresh().n == 6
    taken = take(lake.run(), 3)
    found = [each.is_of_lineage(decisions(lake)) for each in (earlier, later, taken)]
    assert found == [True, False, True]
