"""What happens to a load if bronze is read again or goes back."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from headgate.flow.sources.loading import LoadPlan
from headgate.history.loads.reopening import changes_to_reopen, reopen_done_loads
from headgate.history.loads.requests import (
    LoadRequest,
    Wish,
    all_loads,
    applies,
    decide_load_change,
    loads_of,
    next_open_load,
)
from headgate.history.savepoints.resets import BatchIdentity, ResetTarget
from headgate.lake.control.requests import send_request
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import LOAD, LOAD_CHANGE, RESET, Decision, Decisions
from headgate.lake.tables.load import Load
from tests.support.decisions import control_of, reset_to
from tests.support.loads import begin_load, change_load, wishes

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
PLAN = LoadPlan({"sequence": 0}, {"sequence": 3}, "3 files of a", "files")
REQUEST = LoadRequest("l-1", "events", PLAN, "me", NOW)
ALL = Load("l-1", 1, 9, {"sequence": 3}, 30)
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


def test_a_restore_takes_back_what_was_done_after_the_savepoint(tmp_path: Path) -> None:
    """There are two loads of the same files. One was done before the savepoint."""
    layout = Layout.of(str(tmp_path), "shop")
    begin_load(layout, "shop", replace(REQUEST, wish="done"))
    control = control_of(layout.storage, "shop")
    saved = control.known.last
    begin_load(layout, "shop", replace(REQUEST, id="l-2", wish="done"))
    begin_load(layout, "shop", replace(REQUEST, id="l-3"))

    def restore(decision: int | None) -> None:
        back: dict[str, BatchIdentity | None] = {"events": None}
        target = {"bronze/events": ResetTarget(0)}
        reset_to(control, target, NOW, savepoint="s", decision=decision, back_to=back)

    assert wishes(layout, "shop") == {"l-1": "done", "l-2": "done", "l-3": "open"}
    newest = control.refresh().last
    restore(saved)
    assert wishes(layout, "shop") == {"l-1": "done", "l-2": "taken back", "l-3": "open"}
    restore(newest)
    assert wishes(layout, "shop") == {"l-1": "done", "l-2": "done", "l-3": "open"}
    restore(0)
    assert wishes(layout, "shop") == {"l-1": "taken back", "l-2": "taken back", "l-3": "open"}
    control.refresh()
    reopen_done_loads(control, "events", {}, NOW)
    assert wishes(layout, "shop")["l-1"] == "taken back", "only what was done is read again"
    change_load(layout, "shop", REQUEST, wish="done")
    reopen_done_loads(control, "events", {}, NOW)
    assert wishes(layout, "shop")["l-1"] == "done", "the decisions known are the older ones"
    control.refresh()
    reopen_done_loads(control, "events", {}, NOW)
    assert wishes(layout, "shop") == {"l-1": "open", "l-2": "taken back", "l-3": "open"}


def test_a_reset_that_is_no_restore_of_bronze_takes_no_load_back(tmp_path: Path) -> None:
    layout = Layout.of(str(tmp_path), "shop")
    begin_load(layout, "shop", replace(REQUEST, wish="done"))
    control = control_of(layout.storage, "shop")
    reset_to(control, {"gold/sales": ResetTarget(0)}, NOW)
    assert wishes(layout, "shop") == {"l-1": "done"}


def test_each_load_of_a_source_has_a_number_of_its_own(tmp_path: Path) -> None:
    layout = Layout.of(str(tmp_path), "shop")
    for id_, source in (("l-1", "events"), ("l-2", "refunds"), ("l-3", "events")):
        begin_load(layout, "shop", replace(REQUEST, id=id_, source=source))
    assert [load.number for load in all_loads(layout, "shop")] == [1, 1, 2]


def test_a_request_that_waits_counts_as_a_load_of_its_wish(tmp_path: Path) -> None:
    """Also a change that waits. Once they are decided, the documents left by a crash do not count
    twice."""
    layout = Layout.of(str(tmp_path), "shop")
    begin_load(layout, "shop", REQUEST)
    send_request(layout, LOAD, REQUEST.document(), NOW, "l-2")
    pause = {"load": "l-1", "changes": {"wish": "paused"}}
    change = send_request(layout, LOAD_CHANGE, pause, NOW)
    assert wishes(layout, "shop") == {"l-1": "paused", "l-2": "open"}
    control = control_of(layout.storage, "shop")
    assert next_open_load(loads_of(control.known)) == replace(REQUEST, number=1)
    decide_load_change(control, "l-1", pause["changes"], {}, NOW, change.id)  # type: ignore[arg-type]
    change_load(layout, "shop", REQUEST, wish="open")
    assert wishes(layout, "shop") == {"l-1": "open", "l-2": "open"}


def test_many_restores_are_read_in_one_pass() -> None:
    """If each restore read all rows before its savepoint, thirty would take a billion passes."""
    back = {"back_to": {"events": None}}
    rows = (Decision(n, RESET, {}, {**back, "decision": n - 1}, NOW) for n in range(1, 31))
    assert loads_of(Decisions(tuple(rows), 30)) == ()


@pytest.mark.parametrize(
    ("now", "wish", "does"),
    [
        ("open", "cancelled", True),
        ("stopped", "cancelled", True),
        ("done", "cancelled", False),
        ("cancelled", "paused", False),
        ("done", "open", True),
    ],
)
def test_a_load_that_has_ended_meanwhile_is_not_cancelled(
    now: Wish, wish: Wish, does: bool
) -> None:
    """Else a new read of bronze would leave its late rows out of gold."""
    assert applies({"wish": wish}, replace(REQUEST, wish=now)) == does
    assert not applies({"wish": wish}, None)
