"""The request of a replay: there is one at a time, it is carried out once, or it is void."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from headgate.history.replay.requests import (
    ReplayDocument,
    ReplayWaitsError,
    request_replay,
    requested_copies,
    require_no_replay,
    waiting_replay,
)
from headgate.history.savepoints.resets import ResetTarget
from headgate.lake.control.requests import remove_request, send_request
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import REPLAY, ControlTable
from tests.support.decisions import append, at, control_of, reset_to

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
COPIES = pa.table({"value": [b"{}", b"[]"]})
DOCUMENT = ReplayDocument("events", generation=0, before=1, rows=2, reason="by hand")


@pytest.fixture
def control(layout: Layout) -> ControlTable:
    return control_of(layout.storage, "shop")


def test_a_request_waits_with_its_copies_until_it_is_removed(layout: Layout) -> None:
    require_no_replay(layout)
    send_request(layout, "drain", {}, NOON)
    request = request_replay(layout, "r1", DOCUMENT, COPIES, NOON)
    assert waiting_replay(layout) == request
    assert ReplayDocument.of(request) == DOCUMENT
    assert requested_copies(layout, request) == COPIES
    with pytest.raises(ReplayWaitsError, match="a replay of 2 records waits for a driver since"):
        request_replay(layout, "r2", DOCUMENT, COPIES, NOON)
    assert waiting_replay(layout) == request
    remove_request(layout, request)
    require_no_replay(layout)
    with pytest.raises(FileNotFoundError):
        requested_copies(layout, request)


def decided(control: ControlTable, source: str = "events", id_: str | None = None) -> None:
    document = {"source": source, "generation": 0, "before": 0, "rows": 1, "reason": ""}
    append(control, REPLAY, document, at(events=3, refunds=3), NOON, request=id_)


def test_one_after_as_many_replays_as_it_knew_of_is_carried_out(control: ControlTable) -> None:
    decided(control, "refunds")
    assert DOCUMENT.is_void(control.known), "the earlier replay was taken back"
    decided(control)
    assert not DOCUMENT.is_void(control.known)
    decided(control, "refunds")
    append(control, "drain", {}, at(events=3), NOON)
    assert not DOCUMENT.is_void(control.known), "that is of another source"
    decided(control)
    assert DOCUMENT.is_void(control.known), "another one came first"


@pytest.mark.parametrize("more", [{}, {"back_to": {"events": None}}])
def test_one_from_before_a_reset_is_void(control: ControlTable, more: dict[str, Any]) -> None:
    decided(control)
    reset_to(control, {"gold/sales": ResetTarget()}, NOON, **more)
    assert DOCUMENT.is_void(control.refresh())


def test_a_replay_is_known_by_the_id_of_its_request(control: ControlTable) -> None:
    decided(control, id_="r1")
    (replay,) = control.known.replays_of("events")
    assert (replay.request, replay.n, replay.rows) == ("r1", 4, 1)
    assert control.known.replays_of("refunds") == ()
