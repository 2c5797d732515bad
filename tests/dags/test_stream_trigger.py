"""The trigger, with a fake launcher."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

from headgate.airflow.triggers.stream_trigger import StreamTrigger
from headgate.lake.control.claim import Claim, claim
from headgate.lake.control.driver_reports import Failure, record_failure
from headgate.lake.control.driver_requests import request_stop, stop_asked
from headgate.lake.storage.layout import Layout
from headgate.supervision.job_state import JobState
from headgate.supervision.launcher import Stream
from tests.support.reported import JOB, NOON
from tests.unit.supervision.conftest import lease

FAR = datetime(2126, 1, 1, tzinfo=UTC)


class Scripted:
    """A launcher whose probes find ``looks``, one after the other; the last one is repeated."""

    looks: list[tuple[JobState, ...] | Exception]
    asked = 0

    def probe(self, stream: Stream, now: datetime) -> tuple[JobState, ...]:
        found = self.looks[min(Scripted.asked, len(self.looks) - 1)]
        Scripted.asked += 1
        if isinstance(found, Exception):
            raise found
        return found


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    Scripted.asked = 0
    monkeypatch.setattr(StreamTrigger, "SETTLES", 0.0)


def trigger(root: Path, *looks: tuple[JobState, ...] | Exception, **changed: Any) -> StreamTrigger:
    Scripted.looks = list(looks)
    kept: dict[str, Any] = {
        "file": "shop.yml",
        "name": "shop",
        "root": str(root),
        "launcher": f"{__name__}:Scripted",
        "token": "mine",
        "until": FAR.isoformat(),
        "wait": 0.0,
        "interval": 0.01,
        "stuck_after": 60.0,
    }
    return StreamTrigger(**(kept | changed))


async def _first(watching: StreamTrigger) -> dict[str, Any]:
    async for event in watching.run():
        payload: dict[str, Any] = event.payload
        return payload
    raise AssertionError("it never fired")


def fired(watching: StreamTrigger) -> dict[str, Any]:
    return asyncio.run(asyncio.wait_for(_first(watching), 20))


def ask_to_stop(root: Path) -> None:
    """Request a stop, as ``headgate stop`` does while ``JOB`` has the lease."""
    layout = Layout.of(str(root), "shop")
    lease(layout, JOB.owner, epoch=JOB.epoch)
    request_stop(layout)


def test_the_death_of_a_driver_is_reported(tmp_path: Path) -> None:
    event = fired(trigger(tmp_path, (JOB,), (replace(JOB, state="dead"),)))
    assert event == {"event": "down", "condition": "dead", "fingerprint": "fused 3 [7] None None"}
    assert Scripted.asked == 2


def test_a_stream_that_never_ran_is_to_be_started(tmp_path: Path) -> None:
    assert fired(trigger(tmp_path, ()))["condition"] == "absent"


def test_a_probe_that_fails_is_repeated(tmp_path: Path) -> None:
    assert fired(trigger(tmp_path, OSError("disk"), ()))["condition"] == "absent"
    assert Scripted.asked == 2


def test_no_progress_is_as_good_as_death(tmp_path: Path) -> None:
    event = fired(trigger(tmp_path, (JOB,), stuck_after=0.05))
    assert event["condition"] == "stuck"


def test_its_time_is_over(tmp_path: Path) -> None:
    past = datetime.now(UTC) - timedelta(seconds=1)
    assert fired(trigger(tmp_path, (JOB,), until=past.isoformat())) == {"event": "rotated"}


def test_rest_is_left_alone(tmp_path: Path) -> None:
    """A stopped stream is not started again, until somebody starts it and that driver dies."""
    ask_to_stop(tmp_path)
    rests = replace(JOB, state="stopped")
    later = replace(JOB, state="dead", epoch=4)
    assert fired(trigger(tmp_path, (rests,), (rests,), (later,)))["condition"] == "dead"
    assert Scripted.asked == 3


def test_a_stop_in_the_pause_before_a_restart_holds(tmp_path: Path) -> None:
    ask_to_stop(tmp_path)
    soon = (datetime.now(UTC) + timedelta(seconds=4)).isoformat()
    watching = trigger(tmp_path, (replace(JOB, state="dead"),), until=soon)
    assert fired(watching) == {"event": "rotated"}
    assert Scripted.asked > 2


def test_a_failure_is_reported_once_and_then_waited_with(tmp_path: Path) -> None:
    gone = Failure(3, "a file is gone", "headgate files skip", NOON)
    record_failure(Layout.of(str(tmp_path), "shop"), gone)
    stopped = (replace(JOB, state="stopped"),)
    assert fired(trigger(tmp_path, stopped)) == {"event": "failed"}
    soon = (datetime.now(UTC) + timedelta(seconds=4)).isoformat()
    waits = trigger(tmp_path, stopped, until=soon, reported=NOON.isoformat())
    assert fired(waits) == {"event": "rotated"}
    assert Scripted.asked > 2


@pytest.mark.parametrize(
    ("looks", "until", "expected"),
    [((), FAR, "down"), ((JOB,), NOON - timedelta(days=999), "rotated")],
)
def test_no_event_before_the_scheduler_has_heard_of_the_deferral(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    looks: tuple[JobState, ...],
    until: datetime,
    expected: str,
) -> None:
    monkeypatch.setattr(StreamTrigger, "SETTLES", 0.3)
    began = time.monotonic()
    assert fired(trigger(tmp_path, looks, until=until.isoformat()))["event"] == expected
    assert time.monotonic() - began >= 0.3


def test_it_can_be_made_again_elsewhere(tmp_path: Path) -> None:
    watching = trigger(tmp_path, ())
    path, kept = watching.serialize()
    assert path == "headgate.airflow.triggers.stream_trigger.StreamTrigger"
    assert StreamTrigger(**kept).serialize() == (path, kept)


@pytest.mark.parametrize(
    ("state", "token", "stops"),
    [
        ("failed", "mine", True),
        ("success", "mine", True),
        ("deleted", "mine", True),
        ("None", "mine", False),
        ("queued", "mine", False),
        ("running", "mine", False),
        ("failed", "of another task", False),
    ],
)
def test_only_what_is_over_and_ours_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, token: str, stops: bool
) -> None:
    """A cleared task has no state, or is queued or running again: its next attempt adopts the
    stream."""
    layout = Layout.of(str(tmp_path), "shop")
    claim(layout, Claim(token, ("a test",), NOON))
    watching = trigger(tmp_path, ())
    monkeypatch.setattr(watching, "_state", lambda: state)
    asyncio.run(watching.on_kill())
    assert (stop_asked(layout) is not None) == stops


def test_airflow_is_asked_once_before_a_kill_and_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first answer takes a triggerer seconds."""
    asked, ended = threading.Event(), threading.Event()

    def slow() -> str:
        asked.set()
        assert ended.wait(20), "the trigger waits for it"
        raise ConnectionError("the API server is gone")

    async def first() -> dict[str, Any]:
        try:
            return await _first(watching)
        finally:
            ended.set()

    watching = trigger(tmp_path, (JOB,), ())
    monkeypatch.setattr(watching, "_state", slow)
    began = time.monotonic()
    assert asyncio.run(first())["condition"] == "absent"
    assert asked.is_set()
    assert time.monotonic() - began < 15


def test_it_runs_on_where_airflow_does_not_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = Layout.of(str(tmp_path), "shop")
    claim(layout, Claim("mine", ("a test",), NOON))

    def fails() -> str:
        raise ConnectionError("the API server is gone")

    watching = trigger(tmp_path, ())
    monkeypatch.setattr(watching, "_state", fails)
    asyncio.run(watching.on_kill())
    assert stop_asked(layout) is None


@pytest.mark.parametrize(
    ("map_index", "states", "stops"),
    [
        (-1, {"supervise": None}, False),
        (-1, {"supervise": "failed"}, True),
        (0, {"supervise_0": None, "supervise_1": "failed"}, False),
        (1, {"supervise_0": None, "supervise_1": "failed"}, True),
        (2, {"supervise_0": None, "supervise_1": None}, True),
    ],
)
def test_the_state_of_a_mapped_task_is_its_own(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    map_index: int,
    states: dict[str, str | None],
    stops: bool,
) -> None:
    """A cleared task has no state. Airflow names mapped tasks by their index."""
    layout = Layout.of(str(tmp_path), "shop")
    claim(layout, Claim("mine", ("a test",), NOON))
    found = {"run 1": states}
    monkeypatch.setattr(RuntimeTaskInstance, "get_task_states", staticmethod(lambda **_: found))
    watching = trigger(tmp_path, ())
    about = {"dag_id": "shop__stream", "run_id": "run 1", "task_id": "supervise"}
    watching.task_instance = SimpleNamespace(**about, map_index=map_index)  # type: ignore[assignment]
    asyncio.run(watching.on_kill())
    assert (stop_asked(layout) is not None) == stops
