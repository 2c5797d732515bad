"""``headgate repair``: what it prints, and its exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.driver.lease import Lease
from headgate.history.repair.documents import damaged_documents
from headgate.history.savepoints.store import create_savepoint
from headgate.lake.control.driver_requests import pause, paused_since
from headgate.lake.control.ownership import LAYERS, lease_path
from headgate.lake.storage.format import FORMAT
from headgate.lake.storage.layout import Layout
from tests.support.damage import harm
from tests.unit.cli.conftest import Ask, last_object
from tests.unit.history.repair.conftest import NOW, Lake, lake_in
from tests.unit.history.repair.conftest import lake as _lake
from tests.unit.history.repair.conftest import prepared as _prepared

lake, prepared = _lake, _prepared

GOLD = "gold/per_minute"


@pytest.fixture
def of_lake(lake: Lake) -> tuple[str, ...]:
    return str(lake.pipeline.file), "--root", str(lake.root)


@pytest.mark.slow
@pytest.mark.parametrize("other", [FORMAT - 1, FORMAT + 1])
def test_tables_of_another_format_are_left_alone(
    ask: Ask, lake: Lake, of_lake: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, other: int
) -> None:
    """A driver of a newer version may run: without its leases it would end."""
    with Lease(lake.layout, LAYERS, "tiny").held():
        harm(lake.entries(GOLD)[-1], "truncated")
        for module in ("storage.format", "storage.documents", "tables.log", "tables.state"):
            monkeypatch.setattr(f"headgate.lake.{module}.FORMAT", other)
        before = {p: p.read_bytes() for p in lake.root.rglob("*.json")}
        code, _, err = ask("repair", *of_lake)
        assert (code, f"wrote it in format {FORMAT}" in err) == (2, True)
        assert {p: p.read_bytes() for p in lake.root.rglob("*.json")} == before
        monkeypatch.undo()


@pytest.mark.slow
def test_nothing_is_damaged(ask: Ask, lake: Lake, of_lake: tuple[str, ...]) -> None:
    for options in ([], ["--dry-run"]):
        code, out, _ = ask("repair", *of_lake, *options)
        assert (code, out) == (0, "tiny: nothing is damaged\n")


@pytest.mark.slow
def test_a_dry_run_says_what_and_changes_nothing(
    ask: Ask, lake: Lake, of_lake: tuple[str, ...]
) -> None:
    entry = lake.entries(GOLD)[-1]
    harm(entry, "truncated")
    damaged = entry.read_bytes()
    code, out, _ = ask("repair", *of_lake, "--dry-run")
    assert code == 5
    assert f"{GOLD}/_delta_log/{entry.name}" in out
    assert f"{GOLD}: its log goes back to version 7; entries 8 to 8 are put aside" in out
    assert out.splitlines()[-1].endswith(f"headgate repair {' '.join(of_lake)}")
    assert entry.read_bytes() == damaged


@pytest.mark.slow
def test_repaired(ask: Ask, lake: Lake, of_lake: tuple[str, ...]) -> None:
    harm(lake.entries(GOLD)[-1], "truncated")
    code, _, err = ask("ledger", *of_lake)
    assert code == 5
    command = err.splitlines()[-1]
    assert command.endswith(f"headgate repair {' '.join(of_lake)} --dry-run")
    code, out, _ = ask("repair", *of_lake, "--json")
    said = last_object(out)
    assert code == 0
    assert (said["damaged"], said["repaired"], said["refused"]) == (True, True, None)
    assert [finding["kind"] for finding in said["findings"]] == ["log"]
    assert ask("ledger", *of_lake)[0] == 0
    assert ask("repair", *of_lake)[1] == "tiny: nothing is damaged\n"


@pytest.mark.slow
def test_damaged_bronze_without_a_savepoint(ask: Ask, lake: Lake, of_lake: tuple[str, ...]) -> None:
    file = lake.pipeline.file
    harm(lake.data_files("bronze/events")[2], "flipped")
    code, out, err = ask("repair", *of_lake)
    assert code == 5
    assert out.startswith("bronze/events/data/0-3-")
    assert "bronze/events: 3 records of batch 3 (003.json); silver/good has these ids" in err
    assert "backup" in err
    assert err.splitlines()[-1].endswith(f"headgate run {file} --root {lake.root}-new")
    code, out, _ = ask("repair", *of_lake, "--json", "--dry-run")
    said = last_object(out)
    assert (code, said["actions"], said["repaired"]) == (5, [], False)
    assert "003.json" in said["refused"]
    assert "backup" in said["way_back"]


@pytest.mark.slow
def test_damaged_bronze_goes_back_to_a_savepoint(
    ask: Ask, lake: Lake, of_lake: tuple[str, ...]
) -> None:
    savepoint, (file, *rest) = lake.take(), of_lake
    lake.run(1)
    before = lake.all_rows()
    harm(lake.data_files("bronze/events")[-1], "missing")
    code, out, _ = ask("repair", *of_lake, "--dry-run")
    assert code == 5
    command = f"headgate savepoint restore {file} {' '.join(rest)} {savepoint.id} --reread"
    assert out.splitlines()[-1].endswith(command)
    assert ask("savepoint", "restore", file, savepoint.id, *rest, "--reread")[0] == 0
    assert ask("repair", *of_lake)[1] == "tiny: nothing is damaged\n"
    there = lake_in(lake.root.parent)
    there.run()
    assert there.all_rows() == before


@pytest.mark.slow
def test_a_savepoint_leaves_less_to_build_again(
    ask: Ask, lake: Lake, of_lake: tuple[str, ...]
) -> None:
    savepoint = lake.take()
    lake.run(1)
    harm(lake.data_files(GOLD)[-1], "missing")
    code, out, _ = ask("repair", *of_lake)
    assert code == 0
    file, *rest = of_lake
    restore = f"headgate savepoint restore {file} {' '.join(rest)} {savepoint.id}"
    assert out.splitlines()[-2].endswith(restore)
    assert ask("savepoint", "restore", file, savepoint.id, *rest)[0] == 0
    assert lake_in(lake.root.parent).tables[GOLD].refresh().n == 6


@pytest.mark.slow
def test_a_whole_table_that_is_gone(ask: Ask, lake: Lake, of_lake: tuple[str, ...]) -> None:
    for path, code in (("gold/per_minute", 0), ("bronze/events", 5)):
        lake.folder(path).rename(lake.root / f"gone-{path.partition('/')[0]}")
        assert ask("repair", *of_lake)[0] == code
    refused = last_object(ask("repair", *of_lake, "--dry-run", "--json")[1])["refused"]
    assert f"headgate plan {of_lake[0]}" in refused


@pytest.mark.slow
def test_documents(ask: Ask, lake: Lake, of_lake: tuple[str, ...]) -> None:
    """A lease, a pause and a savepoint are damaged; the output says what is lost with each."""
    create_savepoint(lake.layout, lake.pipeline, NOW)
    Lease(lake.layout, LAYERS, "tiny").take()
    pause(lake.layout, NOW)
    paths = [lease_path("gold"), Layout.document("pause")]
    paths += [stat.path for stat in lake.layout.storage.list("_headgate/savepoints")]
    for path in paths:
        harm(Path(lake.layout.storage.uri(path)), "truncated")
    code, _, err = ask("resume", *of_lake)
    assert code == 5
    assert f"headgate repair {of_lake[0]}" in err
    assert ask("repair", *of_lake)[0] == 6, "bronze's lease is held, and that one is not damaged"
    for layer in ("bronze", "silver"):
        lake.layout.storage.remove(lease_path(layer))
    actions = last_object(ask("repair", *of_lake, "--dry-run", "--json")[1])["actions"]
    assert any(f"headgate pause {of_lake[0]}" in each for each in actions)
    code, out, _ = ask("repair", *of_lake)
    assert code == 0
    assert "the pause is removed" in out
    assert "this savepoint is lost" in out
    assert damaged_documents(lake.layout) == ()
    assert paused_since(lake.layout) is None


def test_damaged_documents_are_found_in_every_folder(lake: Lake) -> None:
    """`headgate repair` must find every document that another command tells a person to repair."""
    folders = ("requests", "gates", "dead_letters/orders")
    for folder in folders:
        lake.layout.storage.write(f"_headgate/{folder}/a.json", b"")
    found = {document.path: document.means for document in damaged_documents(lake.layout)}
    assert found.keys() == {f"_headgate/{folder}/a.json" for folder in folders}
    assert "stays in its table" in found["_headgate/dead_letters/orders/a.json"]
    assert not [means for means in found.values() if "content is unknown" in means]
