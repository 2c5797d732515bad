"""The operator, with a fake launcher."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from headgate.airflow import StreamOperator
from headgate.airflow.operators import stream_operator
from headgate.errors import HeadgateError
from headgate.storage.failure import Failure, record_failure
from headgate.storage.layout import Layout
from headgate.storage.ownership import LAYERS, Owner
from headgate.storage.stopping import StopRequest, request_stop, stop_asked
from headgate.supervision.claim import Claim, claim, claimed
from headgate.supervision.job_state import JobState, State
from headgate.supervision.keeping import RestartPolicy
from headgate.supervision.launcher import LogOf, Stream
from tests.unit.supervision.conftest import lease

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
JOB = JobState(
    "fused", LAYERS, "dead", Owner(1, "here", 0.0), epoch=3, since=NOON, renewed=NOON, n=7
)


class StreamReport:
    """A launcher that records its calls. A start calls ``meanwhile`` and then raises ``fails``, if
    they are set."""

    done: ClassVar[list[str]] = []
    fails: ClassVar[HeadgateError | None] = None
    meanwhile: ClassVar[Callable[[], None] | None] = None
    epoch: ClassVar[int] = 3
    state: ClassVar[State] = "running"

    def probe(self, stream: Stream, now: datetime) -> tuple[JobState, ...]:
        return (replace(JOB, epoch=StreamReport.epoch, state=StreamReport.state),)

    def launch(self, stream: Stream, options: Sequence[str] = ()) -> str:
        StreamReport.done.append("launch")
        if StreamReport.meanwhile is not None:
            StreamReport.meanwhile()
        if StreamReport.fails is not None:
            raise StreamReport.fails
        return "process 1"

    def kill(self, stream: Stream) -> None:
        StreamReport.done.append("kill")

    def logs(self, stream: Stream, lines: int, of: LogOf = "driver") -> list[str]:
        return ["its last words"]


@pytest.fixture(autouse=True)
def _fresh() -> None:
    StreamReport.done.clear()
    StreamReport.fails, StreamReport.epoch, StreamReport.state = None, 3, "running"
    StreamReport.meanwhile = None


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """The layout of a stream whose driver has the lease."""
    layout = Layout.of(str(tmp_path), "shop")
    lease(layout, JOB.owner, epoch=JOB.epoch)
    return layout


def operator(root: Path) -> StreamOperator:
    return StreamOperator(
        task_id="supervise",
        file="shop.yml",
        name="shop",
        root=str(root),
        launcher=f"{__name__}:StreamReport",
        budget=RestartPolicy(crashes=3),
    )


def run(run_id: str, map_index: int = -1) -> Any:
    about = {"dag_id": "shop__stream", "run_id": run_id, "task_id": "supervise"}
    task = SimpleNamespace(**about, map_index=map_index)
    return {"ti": task, "run_id": run_id}


def executed(root: Path, run_id: str = "run 1") -> TaskDeferred:
    with pytest.raises(TaskDeferred) as deferred:
        operator(root).execute(run(run_id))
    return deferred.value


def resumed(root: Path, condition: str, crashes: Sequence[datetime] = ()) -> TaskDeferred:
    event = {"event": "down", "condition": condition, "epochs": [3], "log": ["its last words"]}
    kept: dict[str, Any] = {"token": "t", "until": NOON.isoformat()}
    kept["crashes"] = [crash.isoformat() for crash in crashes]
    with pytest.raises(TaskDeferred) as deferred:
        operator(root).resume(run("run 1"), event, **kept)
    return deferred.value


def test_it_claims_the_stream_and_watches(tmp_path: Path, layout: Layout) -> None:
    deferred = executed(tmp_path)
    held = claimed(layout)
    assert held is not None
    assert held.by == ("shop__stream", "run 1", "supervise")
    assert deferred.trigger.serialize()[1]["token"] == held.token
    assert StreamReport.done == []


def test_a_first_start_is_made_before_the_task_defers(tmp_path: Path) -> None:
    """Else the task would resume before the scheduler has learned that it deferred."""
    StreamReport.state = "dead"
    deferred = executed(tmp_path)
    assert StreamReport.done == ["kill", "launch"]
    assert len(deferred.kwargs["crashes"]) == 1  # type: ignore[index]


GONE = Failure(3, "a file is gone", "headgate files skip shop.yml 3 --root lake", NOON)


def fails(root: Path, run_id: str, how: str) -> str:
    """The error with which the task fails without a retry."""
    kept: dict[str, Any] = {"token": "t", "until": NOON.isoformat(), "crashes": []}
    act = operator(root)
    acts: dict[str, Callable[[], None]] = {
        "at its start": lambda: act.execute(run(run_id)),
        "while it is watched": lambda: act.resume(run(run_id), {"event": "failed"}, **kept),
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
    StreamReport.state = "stopped"
    StreamReport.fails = HeadgateError(GONE.reason, GONE.remedy)
    StreamReport.fails.exit_code = 3  # type: ignore[misc]
    said = fails(tmp_path, "run 1", how)
    assert "exit code 3: a file is gone" in said
    assert GONE.remedy in said
    assert "shop__control" in said
    StreamReport.done.clear()
    waits = executed(tmp_path, "run 2")
    assert StreamReport.done == []
    assert waits.trigger.serialize()[1]["reported"] == NOON.isoformat()


def test_a_failure_that_no_supervisor_saw_is_tried_again(tmp_path: Path, layout: Layout) -> None:
    record_failure(layout, GONE)
    StreamReport.state = "stopped"
    assert executed(tmp_path).kwargs["crashes"] == []  # type: ignore[index]
    assert StreamReport.done == ["launch"]


def test_a_failure_that_was_corrected_meanwhile_is_watched(tmp_path: Path) -> None:
    kept: dict[str, Any] = {"token": "t", "until": NOON.isoformat(), "crashes": []}
    with pytest.raises(TaskDeferred):
        operator(tmp_path).resume(run("run 1"), {"event": "failed"}, **kept)
    assert StreamReport.done == []


@pytest.mark.parametrize(
    ("condition", "done"),
    [
        ("absent", ["launch"]),
        ("ended", ["launch"]),
        ("dead", ["kill", "launch"]),
        ("stuck", ["kill", "launch"]),
    ],
)
def test_a_driver_that_is_down_is_replaced(tmp_path: Path, condition: str, done: list[str]) -> None:
    deferred = resumed(tmp_path, condition)
    assert StreamReport.done == done
    assert len(deferred.kwargs["crashes"]) == (condition != "absent")  # type: ignore[index]


def test_a_stop_of_a_dead_driver_holds(tmp_path: Path, layout: Layout) -> None:
    """The stop is requested after the driver's death, as in the pause before a restart."""
    StreamReport.state = "dead"
    request_stop(layout)
    executed(tmp_path)
    assert StreamReport.done == []
    waits = resumed(tmp_path, "dead")
    assert "launch" not in StreamReport.done
    assert waits.kwargs["crashes"] == [], "it does not count as a crash"  # type: ignore[index]


def test_a_driver_that_is_stuck_and_was_asked_to_stop_is_only_ended(
    tmp_path: Path, layout: Layout
) -> None:
    request_stop(layout)
    assert resumed(tmp_path, "stuck").kwargs["crashes"] == []  # type: ignore[index]
    assert StreamReport.done == ["kill"]


@pytest.mark.usefixtures("layout")
def test_a_stop_of_a_run_that_was_ended_by_hand_holds_for_a_dead_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    executed(tmp_path, "run 1")
    StreamReport.state = "dead"
    monkeypatch.setattr(stream_operator, "state_of", lambda *_: "failed")
    executed(tmp_path, "run 2")
    assert StreamReport.done == []


@pytest.mark.parametrize(
    ("code", "there", "repeats"),
    [(None, "running", True), (7, "dead", True), (7, "running", False), (6, "running", False)],
)
def test_a_stop_while_a_driver_starts_is_repeated_for_it(
    tmp_path: Path, layout: Layout, code: int | None, there: State, repeats: bool
) -> None:
    """It is not repeated if somebody else has restarted the stream and that driver runs."""
    asked = list[StopRequest | None]()
    if code is not None:
        StreamReport.fails = HeadgateError("it does not start", "wait")
        StreamReport.fails.exit_code = code  # type: ignore[misc]

    def stops() -> None:
        request_stop(layout)
        asked.append(stop_asked(layout))

    StreamReport.state, StreamReport.meanwhile = there, stops
    resumed(tmp_path, "dead")
    assert StreamReport.done == ["kill", "launch"]
    assert (stop_asked(layout) not in asked) == repeats


def test_each_mapped_task_claims_in_its_own_name(tmp_path: Path, layout: Layout) -> None:
    with pytest.raises(TaskDeferred):
        operator(tmp_path).execute(run("run 1", map_index=1))
    held = claimed(layout)
    assert held is not None
    assert held.by == ("shop__stream", "run 1", "supervise", "1")


def test_what_somebody_else_has_started_is_left_alone(tmp_path: Path) -> None:
    StreamReport.epoch = 4
    assert resumed(tmp_path, "dead").kwargs["crashes"] == []  # type: ignore[index]
    assert StreamReport.done == []


def test_a_start_that_finds_another_driver_is_no_crash(tmp_path: Path) -> None:
    StreamReport.fails = HeadgateError("held", "wait")
    StreamReport.fails.exit_code = 6  # type: ignore[misc]
    assert resumed(tmp_path, "absent").kwargs["crashes"] == []  # type: ignore[index]


def test_pauses_grow_with_the_crashes(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    waits = [
        resumed(tmp_path, "dead", [now] * crashes).trigger.serialize()[1]["wait"]
        for crashes in range(3)
    ]
    assert waits == [0, 5, 10]


def test_one_crash_too_many_fails_with_the_last_words(tmp_path: Path, layout: Layout) -> None:
    claim(layout, Claim("t", ("a", "b", "c"), NOON))
    with pytest.raises(AirflowFailException, match=r"(?s)down 4 times .*its last words"):
        resumed(tmp_path, "dead", [datetime.now(UTC)] * 3)
    assert StreamReport.done == []
    held = claimed(layout)
    assert held is not None
    assert held.is_over, "the next run must not take this for a stop by hand"


def test_a_start_that_fails_counts(tmp_path: Path) -> None:
    StreamReport.fails = HeadgateError("no space left on device", "make some")
    with pytest.raises(AirflowFailException, match="no space left"):
        resumed(tmp_path, "absent", [datetime.now(UTC)] * 3)


def test_rotation_gives_the_stream_up_in_good_order(tmp_path: Path, layout: Layout) -> None:
    claim(layout, Claim("t", ("a", "b", "c"), NOON))
    kept: dict[str, Any] = {"token": "t", "until": NOON.isoformat(), "crashes": []}
    operator(tmp_path).resume(run("run 1"), {"event": "rotated"}, **kept)
    held = claimed(layout)
    assert held is not None
    assert held.is_over


@pytest.mark.parametrize(
    ("state", "stops"),
    [("failed", True), ("success", True), ("deleted", False), ("running", False)],
)
def test_a_run_that_was_ended_by_hand_is_caught_up_with(
    tmp_path: Path, layout: Layout, monkeypatch: pytest.MonkeyPatch, state: str, stops: bool
) -> None:
    executed(tmp_path, "run 1")
    monkeypatch.setattr(stream_operator, "state_of", lambda *_: state)
    executed(tmp_path, "run 2")
    assert (stop_asked(layout) is not None) == stops


def test_a_further_attempt_of_the_same_run_only_adopts(tmp_path: Path, layout: Layout) -> None:
    executed(tmp_path, "run 1")
    executed(tmp_path, "run 1")
    assert stop_asked(layout) is None


def test_a_stream_that_was_started_again_since_is_left_running(
    tmp_path: Path, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task was marked, the triggerer stopped the stream, and somebody started it again."""
    executed(tmp_path, "run 1")
    request_stop(layout)
    before = stop_asked(layout)
    monkeypatch.setattr(stream_operator, "state_of", lambda *_: "failed")
    executed(tmp_path, "run 2")
    assert stop_asked(layout) == before
    assert before is not None
    assert datetime.now(UTC) - datetime.fromisoformat(before.requested) < timedelta(minutes=1)
