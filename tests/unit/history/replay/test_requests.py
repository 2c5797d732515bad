"""The request of a replay: there is one at a time, it is carried out once, or it is void."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from headgate.history.replay.requests import (
    ReplayWaitsError,
    Request,
    ask,
    copies_of,
    remove,
    require_none,
    waiting,
)
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.replay import Replay
from headgate.lake.tables.state import State

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
COPIES = pa.table({"value": [b"{}", b"[]"]})
REQUEST = Request("r1", "events", generation=2, before=1, rows=2, reason="by hand", at=NOON)
EARLIER = Replay("r0", 3, 1, "by hand")


def bronze(*replays: Replay, generation: int = 2) -> State:
    return State(BronzePayload(replays=replays), generation=generation)


def test_a_request_waits_with_its_copies_until_it_is_removed(layout: Layout) -> None:
    require_none(layout)
    ask(layout, REQUEST, COPIES)
    assert waiting(layout) == REQUEST
    assert copies_of(layout, REQUEST) == COPIES
    with pytest.raises(ReplayWaitsError, match="a replay of 2 records waits for a driver since"):
        ask(layout, replace(REQUEST, id="r2"), COPIES)
    assert waiting(layout) == REQUEST
    remove(layout, REQUEST)
    require_none(layout)
    with pytest.raises(FileNotFoundError):
        copies_of(layout, REQUEST)


def test_whoever_removes_an_earlier_request_leaves_the_one_that_waits(layout: Layout) -> None:
    ask(layout, REQUEST, COPIES)
    remove(layout, replace(REQUEST, id="r0"))
    assert waiting(layout) == REQUEST
    assert copies_of(layout, REQUEST) == COPIES


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
