"""Damage that no table can mend: what is lost is named, and the way back is printed and works."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from headgate.history.repair.plan import Plan
from headgate.history.savepoints.clone import clone_savepoint
from headgate.history.savepoints.restore import restore_savepoint
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import create_savepoint
from headgate.lake.storage.layout import Layout
from tests.support.damage import harm
from tests.unit.history.repair.conftest import BRONZE, FILES, GOLD, NOW, Lake
from tests.unit.history.repair.test_damage import refused

pytestmark = pytest.mark.slow

NEW_ROOT = "⟦headgate run PIPELINE --root ANOTHER_FOLDER⟧"


def take(lake: Lake, minutes: int) -> Savepoint:
    return create_savepoint(lake.layout, lake.pipeline, NOW + timedelta(minutes=minutes))


def command(savepoint: Savepoint, *options: str) -> str:
    return "⟦headgate " + " ".join(["savepoint restore PIPELINE", savepoint.id, *options]) + "⟧"


def lost(lake: Lake, scratch: Path, gone: str) -> Plan:
    plan = lake.examine(scratch / "lost", lambda *_: gone)
    assert plan.refusal is not None
    return plan


def test_bronze_goes_back_to_the_newest_savepoint_without_the_damage(
    lake: Lake, tmp_path: Path
) -> None:
    good = take(lake, 1)
    lake.run(2)
    before = lake.all_rows()
    take(lake, 2)
    harm(lake.data_files(BRONZE)[6], "flipped")
    plan = refused(lake, tmp_path)
    assert plan.refusal is not None
    assert "3 records of batch 7 (007.json)" in plan.refusal
    assert "silver/good has these ids of the same batches: " in plan.refusal
    assert command(good, "--reread") in plan.way_back
    lake.epoch += 1
    restore_savepoint(lake.layout, lake.pipeline, good, lake.epoch, NOW, reread=True)
    assert not lake.examine(tmp_path / "again").is_needed
    lake.open()
    lake.run()
    assert lake.all_rows() == before


def test_the_ids_are_those_of_the_batch(lake: Lake, tmp_path: Path) -> None:
    harm(lake.data_files(BRONZE)[2], "missing")
    refusal = (lake.examine(tmp_path).refusal or "").replace(". Tables", ";")
    said = refusal.partition("silver/good has these ids of the same batches: ")[2].partition(";")[0]
    rows = DeltaTable(str(lake.folder("silver/good"))).to_pyarrow_table().to_pylist()
    assert said.split(", ") == sorted(r["_event_id"] for r in rows if r["_offset"] >> 36 == 3)


def test_a_savepoint_with_another_damaged_file_is_no_way_back(lake: Lake, tmp_path: Path) -> None:
    """The file is not in a current table, so only a look into the savepoint shows the damage."""
    (file,) = (file for file in lake.data_files(GOLD[0]) if "final=false" in str(file))
    take(lake, 1)
    lake.run(5)  # the open rows of the savepoint are in other files now
    assert file not in lake.data_files(GOLD[0])
    harm(file, "flipped")
    harm(lake.data_files(BRONZE)[-1], "flipped")
    assert NEW_ROOT in refused(lake, tmp_path).way_back


def test_without_a_savepoint(lake: Lake, tmp_path: Path) -> None:
    harm(lake.data_files(BRONZE)[2], "flipped")
    way = refused(lake, tmp_path).way_back
    assert f"backup of {lake.layout.storage.uri()}" in way
    assert NEW_ROOT in way


@pytest.mark.parametrize("gone", [None, "file 7 has vanished"])
def test_what_has_to_be_requested_again(lake: Lake, tmp_path: Path, gone: str | None) -> None:
    take(lake, 1)
    lake.run(1)
    harm(lake.data_files(BRONZE)[-1], "flipped")
    way = lake.examine(tmp_path, lambda *_: gone).way_back
    assert "a replay, load, drain or backfill since then has to be requested again" in way


def test_the_source_no_longer_has_the_rest(lake: Lake, tmp_path: Path) -> None:
    good = take(lake, 1)
    lake.run(1)
    harm(lake.data_files(BRONZE)[6], "flipped")
    plan = lost(lake, tmp_path, "file 7 has vanished")
    assert "file 7 has vanished" in plan.way_back
    assert command(good, "--to", "ANOTHER_FOLDER") in plan.way_back


@pytest.mark.parametrize("part", ["truncated", "missing", "of files"])
def test_a_copy_where_a_log_keeps_the_tables_from_going_back(
    lake: Lake, tmp_path: Path, part: str
) -> None:
    good = take(lake, 1)
    lake.run(2)
    before = lake.all_rows()
    if part == "of files":
        harm(lake.data_files(FILES)[-1], "truncated")
    else:
        harm(lake.entries(BRONZE)[-2], part)
    plan = refused(lake, tmp_path)
    assert command(good, "--to", "ANOTHER_FOLDER") in plan.way_back
    assert ("is lost)" in plan.way_back) == (part == "of files")
    clone_savepoint(lake.layout, good, Layout.of(str(tmp_path / "copy"), "tiny"))
    copy = Lake(lake.pipeline, tmp_path / "copy")
    copy.list_new()
    copy.run()
    assert copy.all_rows() == before


def test_the_end_of_bronze_is_lost_and_the_source_has_forgotten_it(
    lake: Lake, tmp_path: Path
) -> None:
    for entry in lake.entries(BRONZE)[-2:]:
        harm(entry, "missing")
    plan = lost(lake, tmp_path, "file 6 has vanished")
    assert plan.refusal is not None
    assert "bronze/events: batches 6 to 6 are lost" in plan.refusal
    assert "file 6 has vanished" in plan.refusal


def test_nothing_of_bronze_is_there(lake: Lake, tmp_path: Path) -> None:
    for entry in lake.entries(BRONZE):
        harm(entry, "emptied")
    plan = refused(lake, tmp_path)
    assert "its log cannot be read past the damage" in (plan.refusal or "")
    assert NEW_ROOT in plan.way_back


def test_gold_cannot_be_rebuilt_over_a_lost_entry_of_bronze(lake: Lake, tmp_path: Path) -> None:
    """The last checkpoint has the entry, so nothing needs it until silver is rebuilt."""
    good = take(lake, 1)
    DeltaTable(lake.layout.storage.uri(BRONZE)).create_checkpoint()
    harm(lake.entries(BRONZE)[3], "truncated")
    assert not lake.examine(tmp_path / "harmless").is_needed
    lake.run(1)
    before = lake.all_rows()
    harm(lake.data_files("silver/good")[-1], "missing")
    plan = refused(lake, tmp_path)
    assert "bronze/events: its log has lost entries that other tables need" in (plan.refusal or "")
    assert command(good) in plan.way_back
    lake.epoch += 1
    restore_savepoint(lake.layout, lake.pipeline, good, lake.epoch, NOW)
    lake.open()
    lake.run()
    assert lake.all_rows() == before
    assert not lake.examine(tmp_path / "again").is_needed
