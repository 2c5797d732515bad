"""The contract of every operation, on tables without open rows. One operation is of another
package. ``tests/spark/test_operations.py`` has rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from headgate.declaration.contracts.operation import (
    OPERATIONS,
    TableOperation,
    UnknownOperationError,
    operation_named,
)
from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import GOLD
from headgate.flow.operations.carrying_out import Operations, decide_operation
from headgate.flow.operations.stage_table import StageTable
from headgate.insight.status.checkpoints import checkpoints
from headgate.lake.tables.decisions import Operation
from headgate.lake.tables.errors import FencedError
from headgate.lake.tables.snapshot import tables_of
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table
from tests.support import forget
from tests.support.decisions import control_of, reset_to
from tests.unit.history.savepoints.conftest import NOW, add_batch, here, lake
from tests.unit.insight.ledger.conftest import Lake

__all__ = ["lake"]  # a fixture

PATH = "gold/per_minute"


@dataclass(frozen=True)
class Case:
    name: str
    document: Mapping[str, Any]


PATCH = {
    "path": "_headgate/backfills/b/per_minute.patch/rows.parquet",
    "digest": "0",
    "definition": "another",
    "after": 0,
    "span": [0, 1],
}

CASES = {
    "backfill": Case(
        "backfill", {"backfill": "b", "generation": 0, "tables": {"per_minute": PATCH}}
    ),
    "drain": Case("drain", {}),
    "forget": Case("forget", {"table": "per_minute", "column": "site", "value": "north"}),
    "idle": Case("idle", {"log": "events", "idle": ["events"]}),
    "late_replay": Case(
        "late_replay", {"table": "per_minute", "from": None, "to": None, "keys": {}}
    ),
}


@pytest.fixture(scope="module", autouse=True)
def toy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with forget.installed(tmp_path_factory.mktemp("site-packages")):
        yield


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


def table(lake: Lake, path: str, epoch: int = 0) -> Table:
    (found,) = (t for t in tables_of(lake.layout, "tiny") if t.name == path)
    if epoch:
        found.fence(epoch)
    return found


def unread(*_: object) -> Any:
    raise AssertionError("there are no open rows to read")


def place(of: Table) -> StageTable:
    return StageTable(of, unread, "time")


def ask(lake: Lake, case: Case) -> Operations:
    graph = graph_of(lake.pipeline)
    lake.control.refresh()
    decide_operation(lake.control, graph, case.name, case.document, here(lake), NOW)
    return operations(lake)


def operations(lake: Lake) -> Operations:
    asked = control_of(lake.layout.storage, "tiny").refresh().operations_of("events")
    return Operations(asked, graph_of(lake.pipeline))


def test_every_member_has_a_case() -> None:
    assert set(OPERATIONS.names()) == set(CASES)


@pytest.mark.slow
def test_it_touches_tables_that_are_built_and_says_what_it_does(lake: Lake, case: Case) -> None:
    graph = graph_of(lake.pipeline)
    touched = operation_named(case.name).touches(graph, case.document)
    assert touched
    assert all(graph[path].kind.is_built for path in touched)
    assert operation_named(case.name).describe(case.document)


@pytest.mark.slow
def test_each_has_its_place_among_the_batches(lake: Lake, case: Case) -> None:
    ask(lake, case)
    add_batch(lake, 3)
    ask(lake, case)
    asked = [Operation(1, case.name, 2, case.document), Operation(2, case.name, 3, case.document)]
    assert [*operations(lake).asked] == asked


@pytest.mark.slow
def test_one_that_is_not_in_force_is_carried_out_by_no_table(lake: Lake, case: Case) -> None:
    ask(lake, case)
    reset_to(lake.control, {}, NOW, void={"events": [1]})
    asked, gold = operations(lake), table(lake, PATH)
    assert asked.of([gold]).stops(2) == (2,)
    asked.carry_out([place(gold)], 2, NOW)
    assert (asked.asked, gold.refresh().operation) == ((), 0)


@pytest.mark.slow
def test_a_table_carries_it_out_once_in_one_commit(lake: Lake, case: Case) -> None:
    asked, gold = ask(lake, case), table(lake, PATH)
    before = gold.refresh()
    version = gold.version
    asked.carry_out([place(gold)], 1, NOW)
    assert gold.refresh() == before, "it is not at its place yet"
    for _ in range(2):
        asked.carry_out([place(gold)], 2, NOW)
        after = gold.refresh()
        assert (after.kind, after.operation, after.n) == ("operation", 1, 2)
        assert gold.version == version + 1
    assert (after.total, after.payload) == (before.total, before.payload)


@pytest.mark.slow
def test_a_table_that_is_not_touched_stays(lake: Lake, case: Case) -> None:
    asked, silver = ask(lake, case), table(lake, "silver/good")
    version = silver.version
    asked.carry_out([place(silver)], 2, NOW)
    silver.refresh()
    assert silver.version == version


@pytest.mark.slow
def test_a_driver_that_was_replaced_carries_out_nothing(lake: Lake, case: Case) -> None:
    asked, gold = ask(lake, case), table(lake, PATH, epoch=7)
    gold.refresh()
    newer = table(lake, PATH, epoch=8)
    with pytest.raises(FencedError):
        asked.carry_out([place(gold)], 2, NOW)
    assert newer.refresh().operation == 0


@pytest.mark.slow
def test_a_table_that_begins_again_has_all_of_them_to_do(lake: Lake, case: Case) -> None:
    ask(lake, case)
    add_batch(lake, 3)
    asked, gold = ask(lake, case), table(lake, PATH)
    assert asked.of([gold]).stops(3) == (2, 3)
    asked.carry_out([place(gold)], 3, NOW)
    assert asked.of([gold]).stops(3) == (3,)
    held = gold.refresh()
    gold.commit(State(held.payload.emptied(), kind="reset", generation=1))
    gold.refresh()
    assert [each.n for each in asked.of([gold]).asked] == [2, 3]
    assert asked.of([gold]).stops(5) == (2, 3, 5)


@pytest.mark.slow
def test_status_says_who_has_still_to_do_it(lake: Lake, case: Case) -> None:
    asked = ask(lake, case)
    (waiting,) = checkpoints(lake.layout, lake.pipeline).operations
    assert (waiting.number, waiting.name, waiting.n) == (1, case.name, 2)
    touched = operation_named(case.name).touches(graph_of(lake.pipeline), case.document)
    assert set(waiting.tables) == set(touched)
    assert waiting.what == operation_named(case.name).describe(case.document)
    for path in touched:
        asked.carry_out([place(table(lake, path))], 2, NOW)
    assert checkpoints(lake.layout, lake.pipeline).operations == ()


def test_nothing_is_asked_for_where_no_table_is_touched(lake: Lake) -> None:
    case = Case("forget", {"table": "of_nobody", "column": "site", "value": "north"})
    assert ask(lake, case).asked == ()


def test_one_that_is_not_there_is_refused_by_name(lake: Lake) -> None:
    with pytest.raises(UnknownOperationError, match="erase") as refused:
        ask(lake, Case("erase", {}))
    assert "backfill, drain, idle, late_replay, forget" in refused.value.remedy


def test_a_table_does_not_pass_one_that_is_not_there(lake: Lake) -> None:
    gold = table(lake, PATH)
    asked = Operations([Operation(1, "erase", 2, {})], graph_of(lake.pipeline))
    with pytest.raises(UnknownOperationError):
        asked.of([gold])


def test_members_keep_the_full_contract() -> None:
    assert all(isinstance(OPERATIONS[name], TableOperation) for name in CASES)
    assert GOLD.path("per_minute") == PATH
