"""Requests of people for operations, until a driver takes them in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.lake.control.requests import remove_request, send_request, waiting_requests
from headgate.lake.storage.documents import DamagedDocumentError
from headgate.lake.storage.layout import Layout
from tests.support.decisions import append, control_of

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(seconds=1)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout.of(str(tmp_path), "shop")


def test_they_wait_in_their_order_until_they_are_removed(layout: Layout) -> None:
    assert waiting_requests(layout) == ()
    second = send_request(layout, "drain", {}, LATER)
    first = send_request(layout, "late_replay", {"table": "sales"}, NOW)
    assert waiting_requests(layout) == (first, second)
    remove_request(layout, first)
    assert waiting_requests(layout) == (second,)


def test_an_operation_is_known_by_the_id_of_its_request(layout: Layout) -> None:
    first = send_request(layout, "late_replay", {"table": "sales"}, NOW)
    second = send_request(layout, "late_replay", {"table": "sales"}, NOW)
    control = control_of(layout.storage, "shop", epoch=1)
    append(control, "late_replay", {"table": "sales"}, {}, NOW)
    asked = append(control, "late_replay", first.document, {}, NOW, request=first.id)
    assert control_of(layout.storage, "shop").refresh().decided(first.id) == asked
    assert control.refresh().decided(second.id) is None


def test_a_damaged_one_is_not_taken_for_another(layout: Layout) -> None:
    asked = send_request(layout, "late_replay", {"table": "sales"}, NOW)
    text = layout.storage.read(asked.path).replace(b"sales", b"sale5")
    layout.storage.write(asked.path, text)
    with pytest.raises(DamagedDocumentError, match="checksum"):
        waiting_requests(layout)


@pytest.mark.parametrize("is_whole", [True, False])
def test_the_draft_of_a_request_is_none(layout: Layout, is_whole: bool) -> None:
    """The draft is still being written, or a killed process has left it."""
    asked = send_request(layout, "drain", {}, NOW)
    content = layout.storage.read(asked.path) if is_whole else b""
    layout.storage.write(f"{asked.path}.c2671121.tmp", content)
    assert waiting_requests(layout) == (asked,)
    remove_request(layout, asked)
    assert waiting_requests(layout) == ()


def test_requests_of_one_second_are_taken_in_as_they_were_asked(layout: Layout) -> None:
    times = [NOW + timedelta(milliseconds=each) for each in range(9)]
    asked = tuple(send_request(layout, "drain", {}, time) for time in times)
    assert waiting_requests(layout) == asked
