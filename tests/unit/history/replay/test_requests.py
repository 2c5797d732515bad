"""The request of a replay: there is one at a time, it is carried out once, or it is void."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from headgate.history.replay.requests import (
    ReplayRequest,
    ReplayWaitsError,
    remove_replay,
    request_replay,
    requested_copies,
    require_no_replay,
    waiting_replay,
)
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.replay import Replay
from headgate.lake.tables.state import State

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
COPIES = pa.table({"value": [b"{}", b"[]"]})
REQUEST = ReplayRequest("r1", "events", generation=2, before=1, rows=2, reason="by hand", at=NOON)
EARLIER = Replay("r0", 3, 1, "by hand")


def bronze(*replays: Replay, generation: int = 2) -> State:
    return State(BronzePayload(replays=replays), generation=generation)


def test_a_request_waits_with_its_copies_until_it_is_removed(layout: Layout) -> None:
    require_no_replay(layout)
    request_replay(layout, REQUEST, COPIES)
    assert waiting_replay(layout) == REQUEST
    assert requested_copies(layout, REQUEST) == COPIES
    with pytest.raises(ReplayWaitsError, match="a replay of 2 records waits for a driver since"):
        request_replay(layout, replace(REQUEST, id="r2"), COPIES)
    assert waiting_replay(layout) == REQUEST
    remove_replay(layout, REQUEST)
    require_no_replay(layout)
    with pytest.raises(FileNotFoundError):
        requested_copies(layout, REQUEST)


def test_whoever_removes_an_earlier_request_leaves_the_one_that_waits(layout: Layout) -> None:
    request_replay(layout, REQUEST, COPIES)
    remove_replay(layout, replace(REQUEST, id="r0"))
    assert waiting_replay(layout) == REQUEST
    assert requested_copies(layout, REQUEST) == COPIES


@pytest.mark.parametrize(
    ("state", "is_done", "is_void"),
    [
        (bronze(EARLIER), False, False),
        (bronze(), False, True),  # went back to before the earlier replay
        (bronze(EARLIER, Replay("r9", 4, 1, "by hand")), False, True),  # another one came first
        (bronze(EARLIER, generation=3), False, True),  # was reset
        (bronze(EARLIER, Replay("r1", 4, 2, "by hand")), True, True),
    ],
)
def test_bronze_says_what_became_of_a_request(state: State, is_done: bool, is_void: bool) -> None:
    assert (REQUEST.is_done(state), REQUEST.is_void(state)) == (is_done, is_void)
