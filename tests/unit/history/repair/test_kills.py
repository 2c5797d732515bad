"""A repair that is killed at any point is finished by the next one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from headgate.history.savepoints.verify import verify_savepoint
from tests.support.damage import harm
from tests.support.failing import dying
from tests.support.rounds import IN_FULL
from tests.unit.history.repair.conftest import ASIDE, BRONZE, GOLD, LATE, SILVER, Lake

pytestmark = pytest.mark.long


def log_and_file(lake: Lake) -> None:
    for entry in lake.entries(SILVER[0])[-4:]:
        harm(entry, "truncated")
    harm(lake.data_files(LATE[0])[2], "flipped")


def lost_log(lake: Lake) -> None:
    """No entry of the late table's log can be read, and gold's checkpoint is damaged."""
    for entry in lake.entries(LATE[0]):
        harm(entry, "emptied")
    DeltaTable(lake.layout.storage.uri(GOLD[0])).create_checkpoint()
    (checkpoint,) = lake.folder(GOLD[0]).glob("_delta_log/*.checkpoint.parquet")
    harm(checkpoint, "truncated")


def bronze_too(lake: Lake) -> None:
    for entry in lake.entries(BRONZE)[-3:]:
        harm(entry, "emptied")
    harm(lake.entries(ASIDE)[-3], "missing")


# Each point once; `make nightly` has more points, and with other damage.
POINTS = [
    (log_and_file, "repair.entry_replaced", 4),
    (log_and_file, "repair.fenced", 1),
    (lost_log, "repair.checkpoint_aside", 1),
    (lost_log, "repair.log_aside", 5),
    (bronze_too, "repair.entry_replaced", 1),
    (bronze_too, "reset.intended", 1),
    (bronze_too, "reset.table_done", 2),
]
MORE = [
    (log_and_file, "repair.entry_replaced", 1),
    (log_and_file, "reset.intended", 1),
    (log_and_file, "reset.table_done", 3),
    (lost_log, "repair.log_aside", 1),
]


@pytest.mark.parametrize(("hurt", "place", "nth"), POINTS + MORE if IN_FULL else POINTS)
def test_a_repair_that_was_cut_short(
    lake: Lake, tmp_path: Path, hurt: Callable[[Lake], None], place: str, nth: int
) -> None:
    before, files = lake.all_rows(), lake.recorded()
    hurt(lake)
    with dying(place, nth):
        lake.repair(lake.examine(tmp_path / "first"))
    lake.repair(lake.examine(tmp_path / "second"))
    after = lake.examine(tmp_path / "third")
    assert not after.is_needed, after
    lake.open()
    lake.run()
    assert lake.all_rows() == before
    assert lake.recorded() == files


def test_a_driver_may_come_between(lake: Lake, tmp_path: Path) -> None:
    """Once a reset is intended, the next driver or repair finishes it."""
    before = lake.all_rows()
    harm(lake.data_files(SILVER[0])[2], "flipped")
    with dying("reset.table_done"):
        lake.repair(lake.examine(tmp_path / "first"))
    lake.open()
    lake.run(2)
    assert not lake.examine(tmp_path / "second").findings
    assert set(before[SILVER[0]]) < set(lake.rows(SILVER[0]))


def test_versions_are_never_given_twice(lake: Lake, tmp_path: Path) -> None:
    """A savepoint of a version that was cut away does not match the version that replaced it."""
    savepoint = lake.take()
    newest = savepoint.tables[GOLD[0]].version
    for entry in lake.entries(GOLD[0])[-3:]:
        harm(entry, "truncated")
    lake.repair(lake.examine(tmp_path / "look"))
    table = lake.tables[GOLD[0]].reader()
    table.refresh()
    assert table.version > newest
    (problem,) = verify_savepoint(lake.layout, "tiny", savepoint)
    assert problem.table == GOLD[0]


def test_what_was_damaged_is_kept(lake: Lake, tmp_path: Path) -> None:
    entry = lake.entries(GOLD[0])[-3]
    harm(entry, "truncated")
    content, name = entry.read_bytes(), entry.name
    lake.repair(lake.examine(tmp_path / "look"))
    kept = lake.folder("_headgate/damaged").rglob(f"gold/per_minute/_delta_log/{name}")
    assert [path.read_bytes() for path in kept] == [content]
