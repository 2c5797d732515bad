"""Which task supervises the stream, and which end of a task stops it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from headgate.airflow import Reconciler
from headgate.airflow.operators import reconciler, stream_operator
from headgate.storage.claim import Claim, claim, claimed
from headgate.storage.layout import Layout
from headgate.storage.stopping import request_stop, stop_asked
from tests.support.stream_task import (
    NOON,
    FakeLauncher,
    about,
    down,
    executed,
    fresh,
    kept,
    layout,
    operator,
    resumed,
    run,
)

__all__ = ["fresh", "layout"]  # fixtures

FULL = OSError(28, "No space left on device")


@pytest.fixture
def is_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets the state of the earlier run's task in Airflow."""

    def set_state(state: str) -> None:
        for module in (stream_operator, reconciler):
            monkeypatch.setattr(module, "state_of", lambda *_: state)

    return set_state


def held(layout: Layout) -> Claim:
    found = claimed(layout)
    assert found is not None
    return found


def test_it_claims_the_stream_and_watches(tmp_path: Path, layout: Layout) -> None:
    deferred = executed(tmp_path)
    assert held(layout).by == ("shop__stream", "run 1", "supervise")
    assert deferred.trigger.serialize()[1]["token"] == held(layout).token
    assert not held(layout).is_over
    assert FakeLauncher.done == []


def test_each_mapped_task_claims_in_its_own_name(tmp_path: Path, layout: Layout) -> None:
    executed(tmp_path, map_index=1)
    assert held(layout).by == ("shop__stream", "run 1", "supervise", "1")


def test_rotation_gives_the_stream_up_in_good_order(tmp_path: Path, layout: Layout) -> None:
    claim(layout, Claim("t", ("a", "b", "c"), NOON))
    operator(tmp_path).resume(run("run 1"), {"event": "rotated"}, **kept())
    assert held(layout).is_over


@pytest.mark.parametrize(
    ("state", "stops"),
    [
        ("failed", True),
        ("success", True),
        ("deleted", False),
        ("running", False),
        ("upstream_failed", False),  # it was cleared, and then `preflight` failed
    ],
)
def test_a_run_that_was_ended_by_hand_is_caught_up_with(
    tmp_path: Path, layout: Layout, is_in: Callable[[str], None], state: str, stops: bool
) -> None:
    executed(tmp_path, "run 1")
    is_in(state)
    executed(tmp_path, "run 2")
    assert (stop_asked(layout) is not None) == stops


def test_a_stop_of_a_run_that_was_ended_by_hand_holds_for_a_dead_driver(
    tmp_path: Path, layout: Layout, is_in: Callable[[str], None]
) -> None:
    executed(tmp_path, "run 1")
    FakeLauncher.state = "dead"
    is_in("failed")
    executed(tmp_path, "run 2")
    assert FakeLauncher.done == []
    assert stop_asked(layout) is not None


def test_a_further_attempt_of_the_same_run_only_adopts(tmp_path: Path, layout: Layout) -> None:
    executed(tmp_path, "run 1")
    executed(tmp_path, "run 1")
    assert stop_asked(layout) is None


def test_a_stream_that_was_started_again_since_is_left_running(
    tmp_path: Path, layout: Layout, is_in: Callable[[str], None]
) -> None:
    """The task was marked, the triggerer stopped the stream, and somebody started it again."""
    executed(tmp_path, "run 1")
    request_stop(layout)
    before = stop_asked(layout)
    is_in("failed")
    executed(tmp_path, "run 2")
    assert stop_asked(layout) == before
    assert before is not None
    assert datetime.now(UTC) - datetime.fromisoformat(before.requested) < timedelta(minutes=1)


def fails_at_a_start(root: Path, error: Exception, *, at_first: bool) -> None:
    """The task of run 1 starts a driver, and ``error`` ends it."""
    FakeLauncher.fails = error
    if at_first:
        FakeLauncher.state = "dead"
        with pytest.raises(type(error)):
            operator(root).execute(run("run 1"))
        return
    deferred = executed(root, "run 1")
    with pytest.raises(type(error)):
        operator(root).resume(run("run 1"), down("dead"), **(deferred.kwargs or {}))


@pytest.mark.parametrize("at_first", [True, False])
def test_a_task_that_fails_by_itself_was_not_ended_by_hand(
    tmp_path: Path, layout: Layout, is_in: Callable[[str], None], at_first: bool
) -> None:
    fails_at_a_start(tmp_path, RuntimeError("a mistake of ours"), at_first=at_first)
    is_in("failed")
    FakeLauncher.done.clear()
    FakeLauncher.fails = None
    executed(tmp_path, "run 2")
    assert stop_asked(layout) is None
    assert FakeLauncher.done == ["kill", "launch"]


def test_one_crash_too_many_is_no_end_by_hand(tmp_path: Path, layout: Layout) -> None:
    claim(layout, Claim("t", ("a", "b", "c"), NOON))
    with pytest.raises(AirflowFailException):
        operator(tmp_path).resume(
            run("run 1"), down("dead"), **kept(crashes=[datetime.now(UTC)] * 3)
        )
    assert held(layout).is_over


@pytest.mark.parametrize(
    ("state", "next_run", "stops"),
    [("failed", "run 2", True), ("success", "run 2", True), ("running", "run 1", False)],
)
def test_a_mark_while_a_driver_starts_is_caught_up_with(
    tmp_path: Path,
    layout: Layout,
    is_in: Callable[[str], None],
    state: str,
    next_run: str,
    stops: bool,
) -> None:
    """Airflow calls ``on_kill`` if the task was marked or cleared, and then ends it."""
    task = operator(tmp_path)
    FakeLauncher.state, FakeLauncher.fails = "dead", RuntimeError("ended")
    FakeLauncher.meanwhile = task.on_kill
    with pytest.raises(RuntimeError):
        task.execute(run("run 1"))
    FakeLauncher.forget()
    is_in(state)
    executed(tmp_path, next_run)
    assert (stop_asked(layout) is not None) == stops


def test_a_full_disk_is_waited_for_in_the_triggerer(
    tmp_path: Path, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    deferred = executed(tmp_path)

    def fails(*_: Any, **__: Any) -> None:
        raise FULL

    for name in ("give_up", "take_up"):
        monkeypatch.setattr(stream_operator, name, fails)
    for event in (down("dead"), {"event": "rotated"}, {"event": "failed"}):
        waits = resumed(tmp_path, event)
        assert waits.kwargs is not None
        assert waits.kwargs["crashes"] == []
    assert FakeLauncher.done == []
    assert held(layout).token == deferred.trigger.serialize()[1]["token"]


@pytest.mark.parametrize(
    ("state", "is_over", "said", "stops"),
    [
        ("deferred", False, "it runs; the run run 1 supervises it", False),
        ("running", True, "it runs; the run run 1 supervises it", False),
        ("failed", False, "the run run 1 is failed, so it is asked to stop", True),
        ("deleted", False, "the run run 1 is deleted, so it is asked to stop", True),
        ("failed", True, "it runs without supervision: switch shop__stream on", False),
        ("upstream_failed", False, "it runs without supervision: switch shop__stream on", False),
    ],
)
def test_what_maintenance_does_about_a_stream(
    tmp_path: Path,
    layout: Layout,
    is_in: Callable[[str], None],
    state: str,
    is_over: bool,
    said: str,
    stops: bool,
) -> None:
    task = Reconciler(task_id="reconcile", **about(tmp_path))
    assert task.execute(run("m")) == "shop: it runs without supervision: switch shop__stream on"
    claim(layout, Claim("t", ("shop__stream", "run 1", "supervise"), NOON, is_over=is_over))
    is_in(state)
    assert task.execute(run("m")) == f"shop: {said}"
    assert (stop_asked(layout) is not None) == stops
