"""The control table, as its owner and other processes see it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from headgate.history.maintenance.compaction import merge_files, replace_files
from headgate.lake.storage.files import Storage
from headgate.lake.tables import decisions as module
from headgate.lake.tables.damage import read_sound
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.decisions import (
    AMENDMENT,
    NO_DECISIONS,
    REBUILD,
    ControlTable,
    Decision,
    Decisions,
    SourcePosition,
    position_of,
    void_with,
)
from headgate.lake.tables.errors import CommitRefusedError, FencedError, LogGapError
from headgate.lake.tables.history import with_footers
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.log import entry_path
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import SourceWatermarks
from headgate.lake.tables.table import Table
from tests.support.decisions import append, control_of, reset_to
from tests.unit.lake.tables.conftest import SCHEMA, TIME

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
AT = {"events": SourcePosition(3, 17)}


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(str(tmp_path))


@pytest.fixture
def owner(storage: Storage) -> ControlTable:
    """The process that may append."""
    return control_of(storage, "p", epoch=1)


@pytest.fixture
def reader(owner: ControlTable, storage: Storage) -> ControlTable:
    """A process that has read the decisions when there was none."""
    found = ControlTable.of(storage, "p")
    assert found.refresh() == NO_DECISIONS
    return found


def drain(owner: ControlTable, n: int = 3, **more: Any) -> Decision:
    return append(owner, "drain", {"by": "me"}, {"events": SourcePosition(n)}, NOON, **more)


def numbers(decisions: Decisions) -> list[int]:
    return [each.number for each in decisions.rows]


def test_another_process_reads_what_was_decided(owner: ControlTable, reader: ControlTable) -> None:
    first = append(owner, "drain", {"by": "me"}, AT, NOON)
    second = append(owner, "late_replay", {"keys": {"é": None}}, {}, NOON, request="r-1")
    assert owner.known.rows == reader.refresh().rows == (first, second)
    assert (first.number, second.number, reader.known.last) == (1, 2, 2)
    assert reader.known.decided("r-1") == second
    assert reader.known.decided("r-2") is None
    assert owner.refresh() == reader.known


def test_there_are_none_without_a_table(storage: Storage) -> None:
    found = ControlTable.of(storage, "p")
    assert not found.exists
    assert found.refresh() == NO_DECISIONS
    control_of(storage, "p")
    assert found.exists


def test_the_state_of_the_table_is_that_of_its_decisions(owner: ControlTable) -> None:
    drain(owner)
    reset_to(owner, {}, NOON)
    drain(owner)
    state = owner.table.refresh()
    assert (state.n, state.generation, dict(state.total)) == (3, 1, {"decisions": 3})
    assert owner.known.generation == 1
    assert DeltaTable(owner.table.storage.uri()).to_pyarrow_table().num_rows == 3


def read_files(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of the files that are read from now on."""
    found: list[str] = []

    def reading(storage: Storage, file: DataFile) -> pa.Table:
        found.append(file.path)
        return read_sound(storage, file)

    monkeypatch.setattr(module, "read_sound", reading)
    return found


def test_only_new_rows_are_read(
    owner: ControlTable, reader: ControlTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(4):
        drain(owner)
    reader.refresh()
    files = read_files(monkeypatch)
    reader.refresh()
    assert files == [], "there is nothing new"
    drain(owner)
    owner.table.fence(2)
    assert reader.refresh().last == 5
    assert len(files) == 1
    reader.refresh()
    assert len(files) == 1, "a fence has no rows"


def test_a_reader_that_is_far_behind_reads_all_rows(
    owner: ControlTable, reader: ControlTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_FEW", 2)
    drain(owner)
    reader.refresh()
    for _ in range(3):
        drain(owner)
    files = read_files(monkeypatch)
    assert numbers(reader.refresh()) == [1, 2, 3, 4]
    assert len(files) == 4


def compact(owner: ControlTable) -> None:
    """Merge all files, and remove them, as maintenance does."""
    table = owner.table
    state = table.refresh()
    files = tuple(with_footers(table, table.version, live_files(table.handle)))
    merged: list[DataFile] = []

    def merging() -> Iterator[None]:
        merged.append((yield from merge_files(table, state, files)))

    list(merging())
    assert replace_files(table, files, merged[0], NOON)
    for file in files:
        table.storage.remove(file.path)


@pytest.mark.parametrize("known", [0, 2, 4])
def test_files_are_merged_between_two_readings(
    owner: ControlTable, reader: ControlTable, known: int
) -> None:
    """The merged file has known rows and new ones."""
    for number in range(1, 5):
        drain(owner, number)
        if number <= known:
            reader.refresh()
    compact(owner)
    assert reader.refresh() == owner.refresh()
    drain(owner, 5)
    assert numbers(reader.refresh()) == [1, 2, 3, 4, 5]
    assert [each.position["events"].n for each in reader.known.rows] == [1, 2, 3, 4, 5]


def test_somebodys_optimize_is_overlooked(owner: ControlTable, reader: ControlTable) -> None:
    drain(owner)
    reader.refresh()
    drain(owner)
    DeltaTable(owner.table.storage.uri()).optimize.compact()
    assert reader.refresh() == owner.refresh()
    drain(owner)
    assert numbers(reader.refresh()) == [1, 2, 3]


def test_the_entries_that_a_reader_has_missed_are_trimmed(
    owner: ControlTable, reader: ControlTable
) -> None:
    drain(owner)
    reader.refresh()
    for _ in range(3):
        drain(owner)
    compact(owner)
    DeltaTable(owner.table.storage.uri()).create_checkpoint()
    owner.table.refresh()
    for each in range(owner.table.version):
        owner.table.storage.remove(entry_path(each))
    assert numbers(reader.refresh()) == [1, 2, 3, 4]


@pytest.mark.parametrize("is_new_reader", [False, True])
def test_a_lost_row_is_damage(
    owner: ControlTable, reader: ControlTable, is_new_reader: bool
) -> None:
    """A foreign writer has removed it."""
    drain(owner)
    drain(owner)
    if not is_new_reader:
        reader.refresh()
    drain(owner)
    DeltaTable(owner.table.storage.uri()).delete("number = 2 or number = 3")
    with pytest.raises(LogGapError, match="of 3 decisions"):
        reader.refresh()


def test_the_append_of_a_process_that_was_replaced_is_refused(
    owner: ControlTable, reader: ControlTable, storage: Storage
) -> None:
    drain(owner)
    owner.refresh()
    control_of(storage, "p", epoch=2)
    with pytest.raises(CommitRefusedError):
        owner.append("drain", {}, AT, NOON)
    with pytest.raises(FencedError):
        owner.refresh()
    assert reader.refresh().last == 1


def test_a_decision_that_another_process_has_made_meanwhile_is_not_passed_over(
    owner: ControlTable, storage: Storage
) -> None:
    """Both have the same epoch, for example because a person has copied a lease."""
    other = ControlTable.of(storage, "p")
    other.table.epoch = 1
    other.refresh()
    drain(owner)
    with pytest.raises(CommitRefusedError):
        other.append("late_replay", {}, AT, NOON)
    assert other.refresh().rows == owner.known.rows
    assert append(other, "late_replay", {}, AT, NOON).number == 2


def test_an_amendment_changes_the_document_from_then_on(
    owner: ControlTable, reader: ControlTable
) -> None:
    first, second = drain(owner), drain(owner)
    amended = {"documents": {str(first.number): {"by": "you"}}}
    append(owner, AMENDMENT, amended, {"events": SourcePosition(9)}, NOON)
    found = reader.refresh()
    operations = found.operations_of("events")
    assert [(o.number, o.n, o.document) for o in operations] == [
        (first.number, 3, {"by": "you"}),
        (second.number, 3, {"by": "me"}),
    ]
    assert found.until(2).operations == (first, second), "as of before it"
    append(owner, AMENDMENT, {"documents": {"1": {"by": "they"}}}, AT, NOON)
    assert reader.refresh().operations[0].document == {"by": "they"}


def test_an_operation_has_a_place_among_the_batches_of_each_source(owner: ControlTable) -> None:
    at = {"orders": SourcePosition(3, 17, 19), "clicks": SourcePosition(8)}
    append(owner, "drain", {}, at, NOON, request="r-1")
    (orders,), (clicks,) = map(owner.known.operations_of, ("orders", "clicks"))
    assert (orders.number, orders.name, orders.n) == (1, "drain", 3)
    assert orders.watermarks == SourceWatermarks(17, 19)
    assert (clicks.number, clicks.name, clicks.n) == (1, "drain", 8)
    assert clicks.watermarks == SourceWatermarks()
    assert orders.request == "r-1"
    assert owner.known.ends("clicks") == {8}


def test_a_source_that_is_added_later_has_no_earlier_operations(owner: ControlTable) -> None:
    drain(owner)
    append(owner, "drain", {}, {"events": SourcePosition(4), "clicks": SourcePosition(0)}, NOON)
    assert [each.number for each in owner.known.operations_of("events")] == [1, 2]
    assert [(each.number, each.n) for each in owner.known.operations_of("clicks")] == [(2, 0)]
    assert owner.known.ends("clicks") == {0}
    assert owner.known.ends("views") == frozenset()


def test_an_operation_that_is_void_for_a_source_still_ends_a_step(owner: ControlTable) -> None:
    """A later reset may bring it into force again, and a merged file must not lie across it."""
    at = {"orders": SourcePosition(3), "clicks": SourcePosition(8)}
    append(owner, "drain", {}, at, NOON)
    reset_to(owner, {}, NOON, void={"orders": [1]})
    found = owner.known
    assert not found.is_in_force(1, "orders")
    assert found.is_in_force(1, "clicks")
    assert (found.operations_of("orders"), len(found.operations_of("clicks"))) == ((), 1)
    assert found.ends("orders") == {3}
    reset_to(owner, {}, NOON, void={})
    assert len(owner.known.operations_of("orders")) == 1, "the newest reset says it"


def test_resets_rebuilds_and_amendments_are_no_operations(owner: ControlTable) -> None:
    drain(owner)
    reset_to(owner, {}, NOON)
    append(owner, REBUILD, {}, AT, NOON)
    append(owner, AMENDMENT, {"documents": {}}, AT, NOON)
    assert [each.number for each in owner.known.operations] == [1]
    assert owner.known.reset == owner.known.rows[1]
    assert owner.known.of(REBUILD) == owner.known.rows[2:3]


def test_void_grows_by_source() -> None:
    void = {"orders": [1, 4], "views": [2]}
    found = void_with(void, {"orders": [4, 3], "clicks": [5]})
    assert found == {"orders": [1, 3, 4], "views": [2], "clicks": [5]}
    assert void_with(void, {}) == void


def test_a_position_is_that_of_every_bronze_table(tmp_path: Path) -> None:
    bronze = {}
    for name, n in (("orders", 2), ("clicks", 0)):
        table = Table(Storage(str(tmp_path)), f"bronze/{name}", pipeline="p")
        table.create(SCHEMA, "digest", time_column=TIME)
        if n:
            payload = BronzePayload(watermark=7, arrival_watermark=8)
            table.commit(replace(table.refresh().advanced_to(n, NOON, payload), batch={}))
        bronze[name] = table.reader()
    assert position_of(bronze) == {"orders": SourcePosition(2, 7, 8), "clicks": SourcePosition(0)}
