"""What one commit of a table carries, and what comes before it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from deltalake import DeltaTable

from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.errors import HeldError
from headgate.lake.tables.history import lineage
from headgate.lake.tables.log import entry_path
from headgate.lake.tables.state import Kind, State
from headgate.lake.tables.table import Table
from tests.unit.lake.tables.conftest import Open, file, next_batch

OPEN, DONE = file("open"), file("done", final=True)
MORE_OPEN, MORE_DONE = file("more-open"), file("more-done", final=True)


@pytest.fixture
def table(open_table: Open) -> Table:
    made = open_table()
    made.fence(1)
    next_batch(made, OPEN, DONE)
    return made


def commit(table: Table, kind: Kind, *files: Sequence[DataFile]) -> State:
    """``files`` are those that are added, removed and moved."""
    add, remove, moved = files
    table.commit(replace(table.refresh(), kind=kind), add, remove, moved=moved)
    return table.refresh()


@pytest.mark.parametrize("kind", ["data", "operation"])
@pytest.mark.parametrize(
    ("add", "remove"), [((MORE_OPEN,), ()), ((), (OPEN,)), ((MORE_DONE,), (OPEN,))]
)
def test_the_gate_comes_before_every_commit_with_other_rows(
    table: Table,
    monkeypatch: pytest.MonkeyPatch,
    kind: Kind,
    add: Sequence[DataFile],
    remove: Sequence[DataFile],
) -> None:
    before = table.refresh(), table.version

    def hold(_: State, added: Sequence[DataFile], removed: Sequence[DataFile]) -> State:
        assert (tuple(added), tuple(removed)) == (add, remove)
        raise HeldError("held")

    monkeypatch.setattr(table, "gate", hold)
    with pytest.raises(HeldError):
        commit(table, kind, add, remove, ())
    assert (table.refresh(), table.version) == before


@dataclass
class Holding:
    """A gate that lets nothing pass."""

    wants_all: bool

    def __call__(self, *_: object) -> State:
        raise HeldError("held")


def test_rows_that_stay_as_they_are_have_passed_the_gate(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Holding(wants_all=False)
    monkeypatch.setattr(table, "gate", gate)
    commit(table, "maintenance", (), (OPEN,), (MORE_OPEN,))
    commit(table, "data", (), (), ())
    gate.wants_all = True
    with pytest.raises(HeldError):
        commit(table, "data", (), (), ())
    commit(table, "maintenance", (), (MORE_OPEN,), (OPEN,))
    table.fence(2)


@pytest.mark.parametrize(
    ("kind", "add", "remove", "moved", "is_last"),
    [
        ("data", (), (), (), True),
        ("operation", (MORE_OPEN,), (OPEN,), (), True),
        ("operation", (), (OPEN, DONE), (MORE_OPEN,), True),
        ("operation", (), (OPEN,), (), False),
        ("operation", (MORE_DONE,), (DONE,), (), False),
        ("operation", (MORE_DONE,), (), (), False),
        ("maintenance", (), (OPEN,), (MORE_OPEN,), False),
    ],
)
def test_open_rows_are_those_of_the_last_commit_that_wrote_them(
    table: Table,
    kind: Kind,
    add: Sequence[DataFile],
    remove: Sequence[DataFile],
    moved: Sequence[DataFile],
    is_last: bool,
) -> None:
    before = table.refresh().data_commit
    state = commit(table, kind, add, remove, moved)
    assert state.data_commit == (table.version if is_last else before)


def test_a_commit_after_one_of_another_tool_counts_the_files_that_it_left(table: Table) -> None:
    table.refresh()
    described = replace(file("x"), path="part-0.parquet")
    optimize = [
        {"commitInfo": {"operation": "OPTIMIZE"}},
        {"remove": {"path": OPEN.path, "dataChange": False, "deletionTimestamp": 0}},
        {
            "add": {
                "path": described.path,
                "size": described.size,
                "stats": described.stats,
                "partitionValues": described.partition,
                "modificationTime": 0,
                "dataChange": False,
            }
        },
    ]
    table.log.write(entry_path(table.version + 1), "\n".join(map(json.dumps, optimize)).encode())
    next_batch(table, MORE_DONE)
    table.refresh()
    assert len(DeltaTable(table.log.uri()).file_uris()) == 3
    table.require_intact()
    assert [commit.state.n for commit in lineage(table)] == [2, 1, 0, 0]
