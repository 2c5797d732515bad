"""The commands for savepoints, if one of these cannot simply be restored."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from headgate.history.savepoints.restore import restore_savepoint
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import create_savepoint, savepoints
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.log import entry_path
from headgate.lake.tables.table import Table
from tests.unit.cli.conftest import Ask, last_object
from tests.unit.history.savepoints.conftest import NOW, add_batch
from tests.unit.insight.ledger.conftest import TIME, Lake

OfLake = tuple[str, str, str]


@pytest.fixture
def other_past(empty_lake: Lake) -> Savepoint:
    """Taken at batch 2, before bronze was taken back to batch 1."""
    lake = empty_lake
    add_batch(lake, 1)
    first = create_savepoint(lake.layout, lake.pipeline, NOW)
    add_batch(lake, 2)
    second = create_savepoint(lake.layout, lake.pipeline, NOW + timedelta(minutes=1), "at noon")
    restore_savepoint(lake.layout, lake.pipeline, first, 7, NOW, reread=True)
    return second


@pytest.mark.slow
def test_one_of_another_past_says_so_everywhere(
    ask: Ask, of_lake: OfLake, other_past: Savepoint
) -> None:
    place, *root = of_lake
    code, out, _ = ask("savepoint", "verify", *of_lake)
    assert code == 0
    assert "can be restored, with --reread only" in out
    assert last_object(ask("savepoint", "verify", *of_lake, "--json")[1])["reread_only"] is True
    assert "with --reread only; at noon" in ask("savepoint", "list", *of_lake)[1]
    listed = last_object(ask("savepoint", "list", *of_lake, "--json")[1])["savepoints"]
    assert [each["reread_only"] for each in listed] == [True, False]
    assert "with --reread only" in ask("savepoint", "show", *of_lake)[1]
    first = listed[1]["id"]
    assert "--reread" not in ask("savepoint", "verify", place, first, *root)[1]


@pytest.mark.slow
def test_remedies_do_not_send_one_in_a_circle(
    ask: Ask,
    of_lake: OfLake,
    other_past: Savepoint,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """Bronze has left the savepoint's past and the source is missing, so only a copy can restore
    it."""
    place, *root = of_lake
    err = ask("savepoint", "restore", place, "latest", *root)[2]
    assert f"{other_past.id} --reread; or" in err
    assert f"{other_past.id} --to {of_lake[2]}-new" in err
    gone = "headgate.driver.rereading.what_is_gone"
    monkeypatch.setattr(gone, lambda *_: "file 17 has vanished")
    code, _, err = ask("savepoint", "restore", place, "latest", "--reread", *root)
    assert code != 0
    assert "file 17 has vanished" in err
    assert "without --reread" not in err
    assert "only a copy can restore it" in err
    code, _, err = ask("savepoint", "verify", *of_lake, "--reread")
    assert code == 5
    assert "and it cannot be restored without bronze" in err
    assert ask("savepoint", "restore", place, "latest", "--to", tmp_path / "copy", *root)[0] == 0


@pytest.mark.slow
def test_a_table_that_nobody_declares_and_that_is_gone_is_passed_over(
    ask: Ask, of_lake: OfLake, lake: Lake, tmp_path: Path
) -> None:
    place, *root = of_lake
    old = Table(lake.layout.storage, "gold/old", pipeline="tiny")
    old.create(pa.schema([("time", TIME), ("final", pa.bool_())]), "digest", time_column="time")
    create_savepoint(lake.layout, lake.pipeline, NOW)
    shutil.rmtree(lake.layout.storage.uri("gold/old"))
    said = "gold/old is neither declared nor present: it is skipped"
    code, _, err = ask("savepoint", "verify", *of_lake)
    assert (code, err) == (0, f"{said}\n")
    assert "the last savepoint" in ask("savepoint", "delete", place, "latest", *root)[2]
    code, out, err = ask("savepoint", "restore", place, "latest", *root, "--json")
    assert (code, err) == (0, f"{said}\n")
    assert last_object(out)["passed_over"] == ["gold/old"]
    assert ask("savepoint", "restore", place, "latest", "--to", tmp_path / "copy", *root)[0] == 0
    shutil.rmtree(lake.layout.storage.uri("gold/per_minute"))
    code, _, err = ask("savepoint", "verify", *of_lake)
    assert code == 5
    assert "gold/per_minute is missing\n" in err


@pytest.mark.slow
def test_verify_reports_what_restore_refuses(
    ask: Ask, of_lake: OfLake, lake: Lake, tmp_path: Path
) -> None:
    """The savepoint is undamaged, but the table's log after it is damaged."""
    place, *root = of_lake
    taken = create_savepoint(lake.layout, lake.pipeline, NOW)
    add_batch(lake, 3)
    newest = entry_path(taken.tables["silver/good"].version + 1)
    path = Path(lake.layout.storage.uri("silver/good")) / newest
    path.write_bytes(path.read_bytes()[:-40])
    code, _, err = ask("savepoint", "verify", *of_lake)
    assert code == 5
    assert "is whole, but today's tables are not" in err
    assert f"/silver/good/{newest}: this entry of the table's log is damaged" in err
    assert f"headgate repair {place}" in err
    said = last_object(ask("savepoint", "verify", *of_lake, "--json")[1])
    assert (said["restorable"], said["problems"], len(said["today"])) == (False, [], 1)
    assert ask("savepoint", "restore", place, "latest", *root)[0] == 5
    assert ask("savepoint", "restore", place, "latest", "--to", tmp_path / "copy", *root)[0] == 0


def test_what_is_not_there_is_1_and_what_is_damaged_5(
    ask: Ask, of_lake: OfLake, lake: Lake
) -> None:
    place, *root = of_lake
    for verb in ("show", "verify", "restore", "delete"):
        for name in ("latest", "2025"):
            assert ask("savepoint", verb, place, name, *root)[0] == 1
    damaged = create_savepoint(lake.layout, lake.pipeline, NOW).id
    lake.layout.storage.write(Layout.savepoint(damaged), b"{}")
    assert ask("savepoint", "show", place, damaged, *root)[0] == 5
    assert ask("savepoint", "delete", place, damaged, *root)[0] == 0


def test_the_latest_is_forgotten_by_that_name(ask: Ask, of_lake: OfLake, lake: Lake) -> None:
    place, *root = of_lake
    first = create_savepoint(lake.layout, lake.pipeline, NOW)
    create_savepoint(lake.layout, lake.pipeline, NOW + timedelta(minutes=1))
    assert ask("savepoint", "delete", place, "latest", *root)[0] == 0
    assert savepoints(lake.layout) == (first,)
