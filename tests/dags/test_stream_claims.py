"""Which task supervises the stream, and which end of a task stops it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from headgate.airflow import Reconciler
from headgate.airflow.operators import reconciler, stream_operator
from headgate.airflow.triggers import stream_trigger
from headgate.airflow.triggers.stream_trigger import StreamTrigger
from headgate.lake.control.claim import Claim, claim, claimed
from headgate.lake.control.driver_requests import request_stop, stop_asked, stop_requested
from headgate.lake.storage.layout import Layout
from tests.support.reported import NOON
from tests.support.stream_task import (
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
from tests.unit.supervision.conftest import lease

__all__ = ["fresh", "layout"]  # fixtures

FULL = OSError(28, "No space left on device")


@pytest.fixture
def is_in(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets the state of the first run's task in Airflow."""

    def set_state(state: str) -> None:
        for module in (stream_operator, reconciler, stream_trigger):
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


def killed(deferred: TaskDeferred) -> None:
    """The triggerer carries out what a person has done to the task."""
    watching = deferred.trigger
    assert isinstance(watching, StreamTrigger)
    watching.task_instance = run("run 1")["ti"]
    asyncio.run(watching.on_kill())


def started_again(layout: Layout) -> None:
    """A person starts the stream: the next driver has the lease."""
    FakeLauncher.job = replace(FakeLauncher.job, epoch=FakeLauncher.job.epoch + 1)
    lease(layout, FakeLauncher.job.owner, epoch=FakeLauncher.job.epoch)


def is_stopped(layout: Layout) -> bool:
    """Whether the driver that runs now was asked to stop."""
    return stop_requested(layout, FakeLauncher.job.epoch)


ORDERS = ["the triggerer first", "the next run first", "no triggerer", "no next run"]


@pytest.mark.parametrize("was_stopped_before", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_a_mark_stops_the_stream_once_in_every_order(
    tmp_path: Path,
    layout: Layout,
    is_in: Callable[[str], None],
    order: str,
    was_stopped_before: bool,
) -> None:
    deferred = executed(tmp_path, "run 1")
    if was_stopped_before:
        request_stop(layout)
        started_again(layout)
    is_in("failed")
    steps: list[Callable[[], object]] = [
        lambda: killed(deferred),
        lambda: executed(tmp_path, "run 2"),
    ]
    if order == "the next run first":
        steps.reverse()
    elif order != "the triggerer first":
        steps.pop(0 if order == "no triggerer" else 1)
    for step in steps:
        step()
        assert is_stopped(layout)
    started_again(layout)
    if order == "no next run":
        request_stop(layout)
        started_again(layout)
        maintenance = Reconciler(task_id="reconcile", **about(tmp_path))
        assert "was started again since" in maintenance.execute(run("m"))
        executed(tmp_path, "run 2")
    assert not is_stopped(layout)


def test_the_next_run_claims_while_the_triggerer_decides(
    tmp_path: Path,
    layout: Layout,
    is_in: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The end is carried out twice, and the claim of the next run stays."""
    deferred = executed(tmp_path, "run 1")
    is_in("failed")

    def late(*about: Any) -> None:
        executed(tmp_path, "run 2")
        request_stop(*about)

    monkeypatch.setattr(stream_trigger, "request_stop", late)
    killed(deferred)
    assert is_stopped(layout)
    assert (held(layout).by[1], held(layout).is_over) == ("run 2", False)
    started_again(layout)
    executed(tmp_path, "run 3")
    assert is_stopped(layout), "run 2 was marked, too"


@pytest.mark.parametrize("state", ["None", "queued", "running", "deferred", "up_for_retry"])
def test_a_cleared_task_keeps_the_stream_running(
    tmp_path: Path, layout: Layout, is_in: Callable[[str], None], state: str
) -> None:
    deferred = executed(tmp_path, "run 1")
    is_in(state)
    killed(deferred)
    again = executed(tmp_path, "run 1")
    killed(deferred)
    assert stop_asked(layout) is None
    is_in("failed")
    killed(again)
    assert is_stopped(layout), "and then it was marked"


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
