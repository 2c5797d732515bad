"""The entry that says which tables are to be reset is damaged. The tables that may still await the
reset are rebuilt; the others stay."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from headgate.history.repair.plan import Plan
from headgate.history.savepoints.bronze_lineage import BronzeLineage
from headgate.history.savepoints.resets import Resets, Target, intend
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.payloads.bronze import BronzePayload
from tests.support.damage import harm
from tests.unit.history.repair.conftest import BRONZE, BUILT, GOLD, LATE, NOW, Lake, of_two
from tests.unit.history.repair.test_damage import add_undeclared, repaired

pytestmark = [pytest.mark.slow, of_two]


def reset_and_forget(lake: Lake, *, files: int, gold: bool = True) -> None:
    """One gold table is built anew, and ``files`` batches follow. Then every log gets a checkpoint,
    and the entry that requested the reset is damaged."""
    bronze = lake.tables[BRONZE]
    intend(bronze, {GOLD[0]: Target()}, NOW, why="asked for by hand")
    asked = BronzePayload.of(bronze.refresh()).reset_commit
    lake.open()
    if gold:
        lake.run(files)
    else:
        lake.land_more(files)
        lake.ingest()
        lake.catch_up_silver()
    for table in lake.tables.values():
        DeltaTable(table.storage.uri()).create_checkpoint()
    harm(lake.folder(BRONZE) / f"_delta_log/{asked:020d}.json", "flipped")


def looked_at(lake: Lake, scratch: Path) -> Plan:
    plan = lake.examine(scratch / "look")
    assert [finding.kind for finding in plan.findings if not finding.harmless] == ["log"]
    return plan


def test_nothing_is_lost_where_all_tables_have_gone_on(lake: Lake, tmp_path: Path) -> None:
    reset_and_forget(lake, files=2)
    with pytest.raises(LogGapError):
        Resets(lake.tables[BRONZE]).awaits(lake.tables[GOLD[1]])
    before = lake.all_rows()
    plan = looked_at(lake, tmp_path)
    assert plan.targets == {}
    assert plan.reread is None
    versions = {path: lake.tables[path].refresh().generation for path in BUILT}
    repaired(lake, tmp_path)
    assert lake.all_rows() == before
    assert {path: lake.tables[path].refresh().generation for path in BUILT} == versions


def test_tables_that_have_not_gone_on_are_rebuilt(lake: Lake, tmp_path: Path) -> None:
    reset_and_forget(lake, files=2, gold=False)
    plan = looked_at(lake, tmp_path)
    assert set(plan.targets) == {GOLD[1], *LATE}, "the other gold table has done it"
    assert plan.reread is None
    repaired(lake, tmp_path)
    assert {lake.tables[path].refresh().n for path in (BRONZE, *GOLD)} == {7}


def test_a_table_that_nobody_declares_loses_its_place(lake: Lake, tmp_path: Path) -> None:
    undeclared = add_undeclared(lake)
    reset_and_forget(lake, files=2)
    assert looked_at(lake, tmp_path).targets == {"gold/of_old": Target(keep=True)}
    repaired(lake, tmp_path)
    assert (undeclared.refresh().n, undeclared.state.definition) == (0, "")


def test_all_is_read_again_where_no_table_has_gone_on(lake: Lake, tmp_path: Path) -> None:
    """Each table may have been named and must begin anew, but bronze cannot be read back that
    far."""
    reset_and_forget(lake, files=0)
    before = lake.all_rows()
    plan = looked_at(lake, tmp_path)
    assert set(plan.targets) == set(BUILT)
    assert plan.reread == Target()
    repaired(lake, tmp_path)
    assert lake.all_rows() == before


def test_it_is_refused_before_anything_changes_where_the_source_forgot(
    lake: Lake, tmp_path: Path
) -> None:
    reset_and_forget(lake, files=0)
    plan = lake.examine(tmp_path / "look", lambda *_: "file 6 has vanished")
    assert "file 6 has vanished" in (plan.refusal or "")


def test_savepoints_from_before_it_count_as_of_another_past(lake: Lake, tmp_path: Path) -> None:
    older = lake.take()
    reset_and_forget(lake, files=2)
    assert not BronzeLineage(lake.tables[BRONZE]).has(older)
