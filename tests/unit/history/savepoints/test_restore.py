"""A restore, in place and as a copy: exact, repeatable, refused if it could not be exact."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from headgate.declaration.graph import graph_of
from headgate.declaration.load import load
from headgate.flow.operations.carrying_out import decide_operation
from headgate.history.savepoints.clone import (
    UnfinishedCloneError,
    clone_savepoint,
    require_finished_clone,
)
from headgate.history.savepoints.errors import SavepointError
from headgate.history.savepoints.resets import Resets
from headgate.history.savepoints.restore import restore_savepoint
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.verify import verify_savepoint
from headgate.insight.ledger import balance
from headgate.lake.storage.files import Storage
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.log import entry_path
from headgate.lake.tables.snapshot import tables_of
from tests.support.decisions import resets_of
from tests.support.failing import dying
from tests.support.rounds import IN_FULL
from tests.unit.history.savepoints.conftest import NOW, add_batch, here, take
from tests.unit.insight.ledger.conftest import SCHEMAS, Lake

BRONZE = "bronze/events"
BUILT = ("quarantine/events", "silver/good", "late/per_minute", "gold/per_minute")


def rows(layout: Layout, path: str) -> list[str]:
    table = DeltaTable(layout.storage.uri(path)).to_pyarrow_table()
    return sorted(map(repr, table.to_pylist()))


def all_rows(layout: Layout) -> dict[str, list[str]]:
    return {path: rows(layout, path) for path in SCHEMAS}


@pytest.mark.slow
def test_what_is_built_from_bronze_goes_back_and_bronze_stays(lake: Lake) -> None:
    then = all_rows(lake.layout)
    savepoint = take(lake)
    add_batch(lake, 3)
    newer = all_rows(lake.layout)
    intent = restore_savepoint(lake.layout, lake.pipeline, savepoint, 7, NOW)
    assert intent.generation == 1
    now = all_rows(lake.layout)
    assert {path: now[path] for path in BUILT} == {path: then[path] for path in BUILT}
    assert now["bronze/events"] == newer["bronze/events"]
    account = balance(lake.layout, lake.pipeline)
    assert account.balanced
    assert account.gold[0].lag == 1
    held = [table.refresh().epoch for table in tables_of(lake.layout, "tiny")]
    assert held == [7] * (len(SCHEMAS) + 1), "whoever drives the pipeline still would go on"


def test_a_source_with_another_name_is_refused_before_anything_changes(lake: Lake) -> None:
    savepoint = take(lake)
    file = lake.pipeline.file
    text = file.read_text().replace("  events:", "  visits:")
    file.write_text(text.replace("from: events", "from: visits"))
    renamed = load(file)
    assert [*renamed.sources] == ["visits"]
    before = [table.refresh().epoch for table in tables_of(lake.layout, "tiny")]
    with pytest.raises(SavepointError, match="the tables have no bronze/visits"):
        restore_savepoint(lake.layout, renamed, savepoint, 7, NOW)
    assert [table.refresh().epoch for table in tables_of(lake.layout, "tiny")] == before


def test_a_restore_proves_itself(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    savepoint = take(lake)
    add_batch(lake, 3)
    monkeypatch.setattr(Resets, "carry_out", lambda *_: None)
    with pytest.raises(LogGapError, match="it differs from the savepoint"):
        restore_savepoint(lake.layout, lake.pipeline, savepoint, 7, NOW)


def test_history_and_table_say_that_there_was_a_restore(lake: Lake) -> None:
    savepoint = take(lake)
    add_batch(lake, 3)
    restore_savepoint(lake.layout, lake.pipeline, savepoint, 7, NOW)
    said = DeltaTable(lake.layout.storage.uri("gold/per_minute")).history(1)[0]["headgate"]
    assert (said["kind"], said["generation"], said["n"]) == ("reset", 1, 2)
    intent = resets_of(lake.layout.storage, "tiny").after(0)[-1]
    assert (intent.savepoint, intent.back_to) == (savepoint.id, {})
    assert savepoint.id in intent.why


def test_bronze_goes_back_too_where_it_is_read_again(lake: Lake) -> None:
    then = all_rows(lake.layout)
    savepoint = take(lake)
    add_batch(lake, 3)
    restore_savepoint(lake.layout, lake.pipeline, savepoint, 7, NOW, reread=True)
    assert all_rows(lake.layout) == then


@pytest.mark.slow
def test_a_restore_after_a_restore(lake: Lake) -> None:
    first = take(lake)
    add_batch(lake, 3)
    then = all_rows(lake.layout)
    second = take(lake, 1)
    for epoch, savepoint in enumerate((first, second, second, first, second), start=7):
        intent = restore_savepoint(lake.layout, lake.pipeline, savepoint, epoch, NOW)
        assert intent.generation == epoch - 6
    assert all_rows(lake.layout) == then


@pytest.mark.slow
def test_a_restore_takes_back_what_its_savepoint_does_not_have(lake: Lake) -> None:
    """It takes back nothing else, whichever savepoints were restored before."""
    owner = lake.control

    def publish(id_: str) -> None:
        patches = {"per_minute": {"path": "patch.parquet"}}
        document = {"backfill": id_, "generation": 0, "tables": patches}
        lake.layout.storage.write("patch.parquet", b"rows")
        owner.refresh()
        graph = graph_of(lake.pipeline)
        decide_operation(owner, graph, "backfill", document, here(lake), NOW)

    def in_force_after(savepoint: Savepoint, *, reread: bool = False) -> list[str]:
        epoch = owner.table.epoch + 1
        restore_savepoint(lake.layout, lake.pipeline, savepoint, epoch, NOW, reread=reread)
        owner.table.epoch = epoch
        asked = owner.refresh().operations_of("events")
        return [each.document["backfill"] for each in asked]

    none = take(lake)
    publish("b1")
    first = take(lake, 1)
    assert in_force_after(none) == []
    taken_back = take(lake, 2)
    publish("b2")
    second = take(lake, 3)
    assert in_force_after(first) == ["b1"]
    assert in_force_after(taken_back) == []
    assert in_force_after(second) == ["b2"], "b1 was taken back before this savepoint"
    assert in_force_after(none) == []
    assert in_force_after(second) == ["b2"]
    assert in_force_after(none, reread=True) == []
    assert in_force_after(second, reread=True) == ["b2"]
    assert in_force_after(first) == ["b1"]


def test_a_table_that_is_younger_begins_anew(lake: Lake) -> None:
    """The savepoint was taken before the gold table existed."""
    savepoint = take(lake)
    without = {p: t for p, t in savepoint.tables.items() if "per_minute" not in p}
    object.__setattr__(savepoint, "tables", without)
    restore_savepoint(lake.layout, lake.pipeline, savepoint, 7, NOW)
    assert rows(lake.layout, "gold/per_minute") == rows(lake.layout, "late/per_minute") == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (Path.unlink, "is missing"),
        (lambda p: p.write_bytes(p.read_bytes()[:-9]), "bytes, had"),
        (lambda p: p.write_bytes(b""), "has 0 bytes"),
    ],
)
def test_nothing_happens_where_a_file_is_not_what_it_was(lake: Lake, harm, told) -> None:  # type: ignore[no-untyped-def]
    savepoint = take(lake)
    add_batch(lake, 3)
    before = all_rows(lake.layout)
    file = next(Path(lake.layout.storage.uri("silver/good/data")).glob("0-2-*/*.parquet"))
    content = file.read_bytes()
    harm(file)
    assert [problem.table for problem in verify_savepoint(lake.layout, "tiny", savepoint)] == [
        "silver/good"
    ]
    with pytest.raises(SavepointError, match=told):
        restore_savepoint(lake.layout, lake.pipeline, savepoint, 7, NOW)
    file.write_bytes(content)
    assert all_rows(lake.layout) == before
    assert not verify_savepoint(lake.layout, "tiny", savepoint, read=True)


@pytest.mark.long
def test_no_flipped_byte_of_a_file_goes_unseen(lake: Lake) -> None:
    """It is seen in the pages and in the footer, where it can rename a column. Only a byte that
    changes no row and that no checksum covers may pass."""
    savepoint = take(lake)
    file = next(Path(lake.layout.storage.uri("bronze/events/data")).glob("0-2-*/*.parquet"))
    written, expected = file.read_bytes(), rows(lake.layout, BRONZE)
    of_bronze = replace(savepoint, tables={BRONZE: savepoint.tables[BRONZE]})
    passed, places = 0, range(0, len(written), 7 if IN_FULL else 23)
    for place in places:
        flipped = bytearray(written)
        flipped[place] ^= 0x10
        file.write_bytes(flipped)
        problems = verify_savepoint(lake.layout, "tiny", of_bronze, read=True)
        if not problems:
            passed += 1
            assert rows(lake.layout, BRONZE) == expected, place
    assert passed < 0.2 * len(places)
    file.write_bytes(written)
    assert not verify_savepoint(lake.layout, "tiny", savepoint, read=True)


def test_a_log_that_tells_another_story_is_found(lake: Lake) -> None:
    savepoint = take(lake)
    path = Path(lake.layout.storage.uri("gold/per_minute")) / entry_path(1)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    kept = [line for line in lines if "add" not in line]
    path.write_text("\n".join(map(json.dumps, kept)))
    (problem,) = verify_savepoint(lake.layout, "tiny", savepoint)
    assert (problem.table, problem.what) == (
        "gold/per_minute",
        "has other files at version 2 of its log",
    )


@pytest.mark.slow
def test_a_copy_is_the_pipeline_as_it_was(lake: Lake, tmp_path: Path) -> None:
    then = all_rows(lake.layout)
    savepoint = take(lake)
    add_batch(lake, 3)
    before = snapshot(tmp_path / "lake")
    there = Layout.of(str(tmp_path / "copy"), "tiny")
    clone_savepoint(lake.layout, savepoint, there)
    assert all_rows(there) == then
    assert snapshot(tmp_path / "lake") == before
    assert balance(there, lake.pipeline).balanced
    with pytest.raises(SavepointError, match="there is a pipeline already"):
        clone_savepoint(lake.layout, savepoint, there)


def test_an_original_that_can_only_be_read_is_copied(
    lake: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    savepoint = take(lake)
    there = Layout.of(str(tmp_path / "copy"), "tiny")
    write = Storage.make_folder

    def refused(storage: Storage, path: str = "") -> None:
        if storage.root == lake.layout.storage.root:
            raise PermissionError(path)
        write(storage, path)

    monkeypatch.setattr(Storage, "make_folder", refused)
    clone_savepoint(lake.layout, savepoint, there)
    assert all_rows(there) == all_rows(lake.layout)


def test_half_a_copy_is_no_pipeline(lake: Lake, tmp_path: Path) -> None:
    savepoint = take(lake)
    there = Layout.of(str(tmp_path / "copy"), "tiny")
    with dying("clone.", 3):
        clone_savepoint(lake.layout, savepoint, there)
    with pytest.raises(UnfinishedCloneError, match="was not finished"):
        require_finished_clone(there)
    clone_savepoint(lake.layout, savepoint, there)
    require_finished_clone(there)
    assert all_rows(there) == all_rows(lake.layout)


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    files = (p for p in folder.rglob("*") if p.is_file())
    return {str(p): (p.stat().st_size, p.stat().st_mtime_ns) for p in files}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "nth"),
    [
        ("restore.fenced", 1),
        ("restore.fenced", 4),
        ("reset.intended", 1),
        ("reset.table_done", 1),
        ("reset.table_done", 2),
        ("reset.table_done", 4),
    ],
)
@pytest.mark.parametrize("reread", [False, True])
def test_a_restore_that_was_cut_short_is_finished_by_the_next(
    lake: Lake, place: str, nth: int, reread: bool
) -> None:
    then = all_rows(lake.layout)
    savepoint = take(lake)
    add_batch(lake, 3)
    newer = all_rows(lake.layout)
    with dying(place, nth):
        restore_savepoint(lake.layout, lake.pipeline, savepoint, 7, NOW, reread=reread)
    restore_savepoint(lake.layout, lake.pipeline, savepoint, 8, NOW, reread=reread)
    expected = then if reread else {**then, "bronze/events": newer["bronze/events"]}
    expected["_headgate/files/events"] = newer["_headgate/files/events"]
    assert all_rows(lake.layout) == expected
