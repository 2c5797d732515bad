"""Requests of people for operations, until a driver takes them in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.flow.operations.requests import remove_request, request_operation, waiting_operations
from headgate.lake.storage.documents import DamagedDocumentError
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.payloads.bronze import BronzePayload, Operation
from headgate.lake.tables.state import State

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(seconds=1)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout.of(str(tmp_path), "shop")


def test_they_wait_in_their_order_until_they_are_removed(layout: Layout) -> None:
    assert waiting_operations(layout) == ()
    second = request_operation(layout, "drain", {}, LATER)
    first = request_operation(layout, "late_replay", {"table": "sales"}, NOW)
    assert waiting_operations(layout) == (first, second)
    remove_request(layout, first)
    assert waiting_operations(layout) == (second,)


def test_an_operation_is_known_by_the_id_of_its_request(layout: Layout) -> None:
    first = request_operation(layout, "late_replay", {"table": "sales"}, NOW)
    second = request_operation(layout, "late_replay", {"table": "sales"}, NOW)
    operations = (
        Operation(1, "late_replay", 3, {"table": "sales"}),
        Operation(2, "late_replay", 4, first.document),
    )
    bronze = State(BronzePayload(operations=operations))
    assert first.operation(bronze) == operations[1]
    assert second.operation(bronze) is None


def test_a_damaged_one_is_not_taken_for_another(layout: Layout) -> None:
    asked = request_operation(layout, "late_replay", {"table": "sales"}, NOW)
    text = layout.storage.read(asked.path).replace(b"sales", b"sale5")
    layout.storage.write(asked.path, text)
    with pytest.raises(DamagedDocumentError, match="checksum"):
        waiting_operations(layout)


@pytest.mark.parametrize("is_whole", [True, False])
def test_the_draft_of_a_request_is_none(layout: Layout, is_whole: bool) -> None:
    """The draft is still being written, or a killed process has left it."""
    asked = request_operation(layout, "drain", {}, NOW)
    content = layout.storage.read(asked.path) if is_whole else b""
    layout.storage.write(f"{asked.path}.c2671121.tmp", content)
    assert waiting_operations(layout) == (asked,)
    remove_request(layout, asked)
    assert waiting_operations(layout) == ()


def test_requests_of_one_second_are_taken_in_as_they_were_asked(layout: Layout) -> None:
    times = [NOW + timedelta(milliseconds=each) for each in range(9)]
    asked = tuple(request_operation(layout, "drain", {}, time) for time in times)
    assert waiting_operations(layout) == asked
