"""The entry that says which tables are to be reset is damaged. A savepoint supersedes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from headgate.history.savepoints.bronze_lineage import BronzeLineage
from headgate.history.savepoints.resets import Resets, ResetTarget, intend_reset
from headgate.history.savepoints.restore import restore_savepoint
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.payloads.bronze import BronzePayload
from tests.support.damage import harm
from tests.unit.history.repair.conftest import BRONZE, GOLD, NOW, Lake, of_two
from tests.unit.history.repair.test_damage import refused

pytestmark = [pytest.mark.slow, of_two]


def test_a_savepoint_of_after_it_is_restored(lake: Lake, tmp_path: Path) -> None:
    older, bronze = lake.take(), lake.tables[BRONZE]
    intend_reset(bronze, {GOLD[0]: ResetTarget()}, NOW, why="asked for by hand")
    asked = BronzePayload.of(bronze.refresh()).reset_commit
    lake.open()
    newer = lake.run(1).take()
    lake.run(1)
    for table in lake.tables.values():
        DeltaTable(table.storage.uri()).create_checkpoint()
    before = lake.all_rows()
    harm(lake.folder(BRONZE) / f"_delta_log/{asked:020d}.json", "flipped")
    with pytest.raises(LogGapError):
        Resets(lake.tables[BRONZE]).awaits(lake.tables[GOLD[1]])

    plan = refused(lake, tmp_path)
    assert [finding.kind for finding in plan.findings if not finding.harmless] == ["log"]
    assert f"savepoint restore PIPELINE {newer.id}⟧" in plan.way_back
    lineage = BronzeLineage(lake.tables[BRONZE])
    assert (lineage.has(older), lineage.has(newer)) == (False, True)
    lake.epoch += 1
    restore_savepoint(lake.layout, lake.pipeline, newer, lake.epoch, NOW)
    assert not lake.examine(tmp_path / "again").is_damage
    lake.open()
    lake.run()
    assert lake.all_rows() == before
