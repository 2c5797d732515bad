"""Requests of people for operations, until a driver takes them in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.flow.operations.requests import ask, remove, waiting
from headgate.lake.storage.documents import DamagedDocumentError
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.operation import Operation
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import State

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(seconds=1)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout.of(str(tmp_path), "shop")


def test_they_wait_in_their_order_until_they_are_removed(layout: Layout) -> None:
    assert waiting(layout) == ()
    second = ask(layout, "drain", {}, LATER)
    first = ask(layout, "late_replay", {"table": "sales"}, NOW)
    assert waiting(layout) == (first, second)
    remove(layout, first)
    assert waiting(layout) == (second,)


def test_an_operation_is_known_by_the_id_of_its_request(layout: Layout) -> None:
    first = ask(layout, "late_replay", {"table": "sales"}, NOW)
    second = ask(layout, "late_replay", {"table": "sales"}, NOW)
    operations = (
        Operation(1, "late_replay", 3, {"table": "sales"}),
        Operation(2, "late_replay", 4, first.document),
    )
    bronze = State(BronzePayload(operations=operations))
    assert first.operation(bronze) == operations[1]
    assert second.operation(bronze) is None


def test_a_damaged_one_is_not_taken_for_another(layout: Layout) -> None:
    asked = ask(layout, "late_replay", {"table": "sales"}, NOW)
    text = layout.storage.read(asked.path).replace(b"sales", b"sale5")
    layout.storage.write(asked.path, text)
    with pytest.raises(DamagedDocumentError, match="checksum"):
        waiting(layout)


@pytest.mark.parametrize("is_whole", [True, False])
def test_the_draft_of_a_request_is_none(layout: Layout, is_whole: bool) -> None:
    """The draft is still being written, or a killed process has left it."""
    asked = ask(layout, "drain", {}, NOW)
    content = layout.storage.read(asked.path) if is_whole else b""
    layout.storage.write(f"{asked.path}.c2671121.tmp", content)
    assert waiting(layout) == (asked,)
    remove(layout, asked)
    assert waiting(layout) == ()


def test_requests_of_one_second_are_taken_in_as_they_were_asked(layout: Layout) -> None:
    times = [NOW + timedelta(milliseconds=each) for each in range(9)]
    asked = tuple(ask(layout, "drain", {}, time) for time in times)
    assert waiting(layout) == asked
