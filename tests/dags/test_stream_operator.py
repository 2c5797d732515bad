"""The operator, with a fake launcher."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from headgate import exit_codes
from headgate.airflow.operators import stream_operator
from headgate.errors import HeadgateError
from headgate.lake.control.claim import Claim, claim
from headgate.lake.control.driver_reports import Failure, last_failure, record_failure
from headgate.lake.control.driver_requests import StopRequest, request_stop, stop_asked
from headgate.lake.storage.layout import Layout
from headgate.supervision.job_state import StateName
from headgate.supervision.supervisor import condition_of
from tests.support.reported import NOON, at_b
from tests.support.stream_task import (
    JOB,
    FakeLauncher,
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


@pytest.fixture(autouse=True)
def _nobody_has_marked_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_operator, "state_of", lambda *_: "running")


def test_a_first_start_is_made_before_the_task_defers(tmp_path: Path) -> None:
    """Else the task would resume before the scheduler has learned that it deferred."""
    FakeLauncher.state = "dead"
    deferred = executed(tmp_path)
    assert FakeLauncher.done == ["kill", "launch"]
    assert len(deferred.kwargs["crashes"]) == 1  # type: ignore[index]


GONE = Failure(3, "a file is gone", "headgate files skip shop.yml 3 --root lake", NOON)


def fails(root: Path, run_id: str, how: str) -> str:
    """The error with which the task fails without a retry."""
    act = operator(root)
    acts: dict[str, Callable[[], None]] = {
        "at its start": lambda: act.execute(run(run_id)),
        "while it is watched": lambda: act.resume(run(run_id), {"event": "failed"}, **kept()),
    }
    with pytest.raises(AirflowFailException) as failed:
        acts[how]()
    return str(failed.value)


@pytest.mark.parametrize("how", ["at its start", "while it is watched"])
def test_what_needs_a_person_fails_once_and_is_not_restarted(
    tmp_path: Path, layout: Layout, how: str
) -> None:
    claim(layout, Claim("t", ("a", "b", "c"), NOON, is_over=True))
    record_failure(layout, GONE)
    FakeLauncher.state = "stopped"
    FakeLauncher.fail(3, GONE.reason)
    said = fails(tmp_path, "run 1", how)
    assert "exit code 3: a file is gone" in said
    assert GONE.remedy in said
    assert "shop__control" in said
    FakeLauncher.done.clear()
    waits = executed(tmp_path, "run 2")
    assert FakeLauncher.done == []
    assert waits.trigger.serialize()[1]["reported"] == NOON.isoformat()


def test_a_failure_that_no_supervisor_saw_is_tried_again(tmp_path: Path, layout: Layout) -> None:
    record_failure(layout, GONE)
    FakeLauncher.state = "stopped"
    assert executed(tmp_path).kwargs["crashes"] == []  # type: ignore[index]
    assert FakeLauncher.done == ["launch"]


def test_a_failure_that_was_corrected_meanwhile_is_watched(tmp_path: Path) -> None:
    resumed(tmp_path, {"event": "failed"})
    assert FakeLauncher.done == []


@pytest.mark.parametrize(
    ("found", "done"),
    [
        ("absent", ["launch"]),
        ("ended", ["launch"]),
        ("dead", ["kill", "launch"]),
        ("stuck", ["kill", "launch"]),
    ],
)
def test_a_driver_that_is_down_is_replaced(tmp_path: Path, found: str, done: list[str]) -> None:
    deferred = resumed(tmp_path, down(found))
    assert FakeLauncher.done == done
    assert len(deferred.kwargs["crashes"]) == (found != "absent")  # type: ignore[index]


@pytest.mark.parametrize(
    ("found", "state", "changed"),
    [
        ("dead", "running", {}),  # as after a machine has slept
        ("ended", "running", {"sources": {}}),
        ("stuck", "running", {"sources": at_b(n=8)}),
        ("stuck", "running", {"updated": NOON}),
        ("stuck", "running", {"epoch": 4}),
        ("stuck", "running", {"operation": "restore"}),
        ("stuck", "paused", {}),
        ("dead", "running", {"epoch": 4}),  # another process has started it
    ],
)
def test_a_driver_that_has_recovered_is_left_alone(
    tmp_path: Path, found: str, state: StateName, changed: dict[str, Any]
) -> None:
    event = down(found)
    FakeLauncher.state, FakeLauncher.job = state, replace(JOB, **changed)
    assert resumed(tmp_path, event).kwargs["crashes"] == []  # type: ignore[index]
    assert FakeLauncher.done == []


def test_a_stop_of_a_dead_driver_holds(tmp_path: Path, layout: Layout) -> None:
    """The stop is requested after the driver's death, as in the pause before a restart."""
    event = down("dead")
    request_stop(layout)
    executed(tmp_path)
    waits = resumed(tmp_path, event)
    assert FakeLauncher.done == []
    assert waits.kwargs["crashes"] == [], "it does not count as a crash"  # type: ignore[index]


@pytest.mark.parametrize("during_the_start", [True, False])
def test_a_stop_holds_after_a_first_driver_that_never_had_a_lease(
    tmp_path: Path, during_the_start: bool
) -> None:
    """It is killed while Spark starts, and the stop comes before or after that."""
    layout = Layout.of(str(tmp_path), "shop")
    FakeLauncher.state = None
    FakeLauncher.fail(7)
    if during_the_start:
        FakeLauncher.meanwhile = lambda: request_stop(layout)
    assert len(executed(tmp_path).kwargs["crashes"]) == 1  # type: ignore[index]
    if not during_the_start:
        assert condition_of((), stop_asked(layout), last_failure(layout)) == "absent"
        request_stop(layout)
    assert condition_of((), stop_asked(layout), last_failure(layout)) == "resting"
    FakeLauncher.done.clear()
    resumed(tmp_path, down("absent"))
    executed(tmp_path, "run 2")
    assert FakeLauncher.done == []


def test_a_driver_that_is_stuck_and_was_asked_to_stop_is_only_ended(
    tmp_path: Path, layout: Layout
) -> None:
    request_stop(layout)
    assert resumed(tmp_path, down("stuck")).kwargs["crashes"] == []  # type: ignore[index]
    assert FakeLauncher.done == ["kill"]


@pytest.mark.parametrize(
    ("code", "there", "repeats"),
    [(None, "running", True), (7, "dead", True), (7, "running", False), (6, "running", False)],
)
def test_a_stop_while_a_driver_starts_is_repeated_for_it(
    tmp_path: Path, layout: Layout, code: int | None, there: StateName, repeats: bool
) -> None:
    """It is not repeated if somebody else has restarted the stream and that driver runs."""
    asked = list[StopRequest | None]()
    if code is not None:
        FakeLauncher.fail(code)

    def stops() -> None:
        FakeLauncher.state = there
        request_stop(layout)
        asked.append(stop_asked(layout))

    FakeLauncher.meanwhile = stops
    resumed(tmp_path, down("dead"))
    assert FakeLauncher.done == ["kill", "launch"]
    assert (stop_asked(layout) not in asked) == repeats


def test_a_start_that_finds_another_driver_is_no_crash(tmp_path: Path) -> None:
    FakeLauncher.fail(6)
    assert resumed(tmp_path, down("absent")).kwargs["crashes"] == []  # type: ignore[index]


def again(root: Path, deferred: TaskDeferred) -> TaskDeferred:
    """The trigger has seen that the driver is dead."""
    with pytest.raises(TaskDeferred) as next_:
        operator(root).resume(run("run 1"), down("dead"), **(deferred.kwargs or {}))
    return next_.value


@pytest.mark.parametrize("takes_its_lease", [True, False])
def test_each_driver_that_dies_at_its_start_counts_once(
    tmp_path: Path, takes_its_lease: bool
) -> None:
    """The start has seen its end, and the trigger sees it again."""

    def dies() -> None:
        if takes_its_lease:
            FakeLauncher.job = replace(FakeLauncher.job, epoch=FakeLauncher.job.epoch + 1)

    FakeLauncher.state, FakeLauncher.meanwhile = "dead", dies
    FakeLauncher.fail(exit_codes.NOT_ALIVE)
    deferred = executed(tmp_path)
    deferred = again(tmp_path, deferred)
    assert len(deferred.kwargs["crashes"]) == 3, "the one that was found, and two starts"  # type: ignore[index]
    with pytest.raises(AirflowFailException, match="went down 4 times"):
        again(tmp_path, deferred)
    assert FakeLauncher.done.count("launch") == 3


def test_each_driver_that_dies_later_counts(tmp_path: Path) -> None:
    FakeLauncher.state = "dead"
    deferred = executed(tmp_path)
    for crashes in (1, 2, 3):
        assert len(deferred.kwargs["crashes"]) == crashes  # type: ignore[index]
        FakeLauncher.job = replace(FakeLauncher.job, epoch=FakeLauncher.job.epoch + 1)
        if crashes < 3:
            deferred = again(tmp_path, deferred)


def test_pauses_grow_with_the_crashes(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    waits = [
        resumed(tmp_path, down("dead"), [now] * crashes).trigger.serialize()[1]["wait"]
        for crashes in range(3)
    ]
    assert waits == [0, 5, 10]


def spent(root: Path, found: str) -> str:
    """The error of one crash too many."""
    crashes = [datetime.now(UTC)] * 3
    with pytest.raises(AirflowFailException) as failed:
        operator(root).resume(run("run 1"), down(found), **kept(crashes=crashes))
    return str(failed.value)


def test_one_crash_too_many_fails_with_the_last_words(tmp_path: Path) -> None:
    assert re.search(r"(?s)down 4 times .*its last words", spent(tmp_path, "dead"))
    assert FakeLauncher.done == []


@pytest.mark.parametrize("how", ["known", "unknown", "before"])
def test_a_full_disk_is_no_crash_and_a_start_is_tried_for_ever(
    tmp_path: Path, layout: Layout, how: str
) -> None:
    """After an hour on a full disk, the stream still starts by itself once there is space."""
    now, waits, event = datetime.now(UTC), list[float](), down("absent")
    if how == "known":
        FakeLauncher.fail(8, "the disk is full")
    elif how == "unknown":
        FakeLauncher.fails = OSError(28, "No space left on device")
    else:
        record_failure(layout, Failure(8, "the disk is full", "free some space", NOON))
        event = down("ended")
    for failures in (0, 1, 2, 100):
        times = kept(crashes=[now] * 2, of_machine=[now] * failures)
        task = operator(tmp_path)
        with pytest.raises(TaskDeferred) as deferred:
            task.resume(run("run 1"), event, **times)
        assert len(deferred.value.kwargs["crashes"]) == 2  # type: ignore[index]
        assert len(deferred.value.kwargs["of_machine"]) == failures + 1  # type: ignore[index]
        waits.append(deferred.value.trigger.serialize()[1]["wait"])
    assert waits == [10, 20, 40, 300]


def test_a_log_that_cannot_be_read_hides_no_crash(tmp_path: Path) -> None:
    FakeLauncher.log_fails = PermissionError(13, "Permission denied", "run.log")
    assert "its log cannot be read: [Errno 13]" in spent(tmp_path, "dead")


def test_a_start_that_fails_counts(tmp_path: Path) -> None:
    FakeLauncher.fails = HeadgateError("it does not open its tables", "see its log")
    assert "it does not open" in spent(tmp_path, "absent")
