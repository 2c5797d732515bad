"""For which definitions of its table a published backfill is valid."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headgate.flow.operations import backfill
from headgate.flow.operations.backfill import MEMBER, Patch
from headgate.flow.operations.carrying_out import amend_extended
from headgate.flow.operations.stage_table import Change, StageTable
from headgate.lake.storage.files import Storage
from headgate.lake.tables.decisions import SourcePosition
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table
from tests.support.decisions import append, control_of
from tests.unit.lake.tables.conftest import SCHEMA, TIME, file

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PATCH = {
    "path": "p",
    "digest": "0",
    "definition": "first",
    "after": 0,
    "span": [0, 1],
}
DOCUMENT: dict[str, Any] = {"backfill": "b", "generation": 0, "tables": {"t": PATCH, "u": PATCH}}
SECOND, THIRD = {"gold/t": ("first", "second")}, {"gold/t": ("second", "third")}


def made(folder: Path, path: str, definition: str) -> Table:
    table = Table(Storage(str(folder)), path, pipeline="p")
    table.create(SCHEMA, definition, time_column=TIME)
    table.fence(1)
    table.refresh()
    return table


@pytest.fixture
def valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Whether the patch of a document changes ``gold/t`` if it was made from a definition."""

    def patched(place: StageTable, state: State, patch: Patch) -> Change:
        return Change(state, add=[file("new")])

    monkeypatch.setattr(backfill, "_patched", patched)

    def of(document: dict[str, Any], definition: str, after: int = 0) -> bool:
        table = made(tmp_path / definition, "gold/t", definition)
        patch = {**PATCH, "after": after}
        document = {**document, "tables": {"t": patch, "u": PATCH}}
        place = StageTable(table, lambda _: pytest.fail("no row is read"), TIME)
        return bool(MEMBER.change(place, table.state, document).add)

    return of


def test_it_is_valid_for_definitions_that_only_add_fields_to_its_own(valid: Any) -> None:
    assert valid(DOCUMENT, "first")
    assert not valid(DOCUMENT, "second")
    assert not valid(DOCUMENT, "first", after=1)
    second = MEMBER.extended(DOCUMENT, SECOND)
    third = MEMBER.extended(second, THIRD)
    assert all(valid(third, name) for name in ("first", "second", "third"))
    assert not valid(third, "x")
    assert not valid(third, "third", after=1)
    assert third["extended"] == {"t": ["second", "third"]}, "only of the table that was extended"


def test_a_definition_for_which_it_is_void_adds_nothing_to_it() -> None:
    assert MEMBER.extended(DOCUMENT, THIRD) == DOCUMENT
    second = MEMBER.extended(DOCUMENT, SECOND)
    assert MEMBER.extended(second, SECOND) == second
    assert MEMBER.extended(DOCUMENT, {"silver/t": ("first", "second")}) == DOCUMENT


def test_its_document_is_amended_once(tmp_path: Path) -> None:
    control, at = control_of(Storage(str(tmp_path)), "p", epoch=1), {"b": SourcePosition(3)}
    append(control, "drain", {}, at, NOON)
    append(control, "backfill", DOCUMENT, at, NOON)
    for _ in range(2):
        amend_extended(control, SECOND, {"b": SourcePosition(4)}, NOON)
    told = control_of(Storage(str(tmp_path)), "p").refresh()
    assert [each.document for each in told.operations_of("b")] == [
        {},
        MEMBER.extended(DOCUMENT, SECOND),
    ]
    assert [each.n for each in told.operations_of("b")] == [3, 3], "their places stay"
    assert told.last == 3
