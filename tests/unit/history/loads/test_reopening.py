"""What happens to a load if bronze is read again or goes back."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headgate.flow.sources.loading import LoadPlan
from headgate.history.loads.reopening import changes_to_reopen, reopen_done_loads, take_back_loads
from headgate.history.loads.requests import LoadRequest, Wish, all_requests, write_request
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.load import Load
from headgate.lake.tables.payloads.bronze import BronzePayload

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
PLAN = LoadPlan({"sequence": 0}, {"sequence": 3}, "3 files of a", "files")
REQUEST = LoadRequest("l-1", "events", PLAN, "me", NOW)
ALL = Load("l-1", 1, 9, {"sequence": 3}, 30, "me")
PART = replace(ALL, offsets={"sequence": 2})
AGAIN = {"wish": "open"}


@pytest.mark.parametrize(
    ("wish", "has", "changes"),
    [
        ("done", ALL, AGAIN),
        ("done", None, {}),
        ("taken back", None, {}),
        ("taken back", ALL, AGAIN),
        ("cancelled", None, {}),
        ("paused", None, {}),
        ("open", None, {}),
        ("open", PART, {}),
        ("done", PART, {**AGAIN, "until": PART.offsets, "then": "taken back"}),
        ("taken back", PART, {**AGAIN, "until": PART.offsets, "then": "taken back"}),
        ("cancelled", PART, {**AGAIN, "until": PART.offsets, "then": "cancelled"}),
        ("cancelled", ALL, {**AGAIN, "until": ALL.offsets, "then": "cancelled"}),
        ("paused", PART, {**AGAIN, "until": PART.offsets, "then": "paused"}),
        ("stopped", PART, {**AGAIN, "until": PART.offsets, "then": "stopped"}),
    ],
)
def test_what_bronze_has_of_a_load_is_read_again(
    wish: Wish, has: Load | None, changes: dict[str, Any]
) -> None:
    assert changes_to_reopen(replace(REQUEST, wish=wish), has) == changes


def test_one_that_is_held_while_it_is_read_again_keeps_its_end() -> None:
    held = replace(REQUEST, wish="paused", until={"sequence": 2}, then="cancelled")
    has = replace(ALL, offsets={"sequence": 1})
    assert changes_to_reopen(held, has) == AGAIN
    assert (held.total, held.read(has), held.is_read(has), held.is_read(PART)) == (
        2,
        1,
        False,
        True,
    )
    assert changes_to_reopen(replace(held, wish="cancelled"), has)["until"] == has.offsets


def test_a_repair_reads_again_what_the_last_restore_has_brought_back(tmp_path: Path) -> None:
    """There are two loads of the same files, and each of two savepoints has one of them."""
    layout = Layout.of(str(tmp_path), "shop")
    write_request(layout, replace(REQUEST, wish="done"))
    write_request(layout, replace(REQUEST, id="l-2", wish="done"))

    def wishes_after(*ids: str) -> list[Wish]:
        loads = tuple(replace(ALL, id=id_) for id_ in ids)
        take_back_loads(layout, BronzePayload(loads=loads), "events")
        return [request.wish for request in all_requests(layout)]

    assert wishes_after() == ["taken back", "taken back"]
    assert wishes_after("l-2") == ["taken back", "done"]
    assert wishes_after("l-1") == ["done", "taken back"]
    reopen_done_loads(layout, "events")
    assert [request.wish for request in all_requests(layout)] == ["open", "taken back"]
