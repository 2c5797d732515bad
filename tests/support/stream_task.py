"""The task that supervises a stream, with a fake launcher."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from airflow.sdk.exceptions import TaskDeferred

from headgate.airflow import StreamOperator
from headgate.errors import HeadgateError
from headgate.lake.storage.layout import Layout
from headgate.supervision.job_state import JobState, StateName
from headgate.supervision.launcher import LogOf, Stream
from headgate.supervision.supervisor import RestartPolicy
from tests.support.reported import JOB as RUNNING
from tests.support.reported import NOON
from tests.unit.supervision.conftest import lease

JOB = replace(RUNNING, state="dead")
STATES: dict[str, StateName | None] = {
    "absent": None,
    "ended": "stopped",
    "dead": "dead",
    "stuck": "running",
}
"""The state of the job in each condition in which a driver is started."""


class FakeLauncher:
    """Records its calls with their options, and the variables of each start in ``given``. A start
    calls ``meanwhile`` and then raises ``fails``, if they are set. There is no job if ``state`` is
    None."""

    done: ClassVar[list[str]] = []
    given: ClassVar[list[dict[str, str]]] = []
    fails: ClassVar[Exception | None] = None
    meanwhile: ClassVar[Callable[[], None] | None] = None
    job: ClassVar[JobState] = JOB
    state: ClassVar[StateName | None] = "running"
    log_fails: ClassVar[OSError | None] = None

    @classmethod
    def forget(cls) -> None:
        cls.done.clear()
        cls.given.clear()
        cls.fails, cls.meanwhile, cls.log_fails = None, None, None
        cls.job, cls.state = JOB, "running"

    @classmethod
    def fail(cls, code: int, reason: str = "it does not start") -> None:
        cls.fails = HeadgateError(reason, "wait", code=code)

    def probe(self, stream: Stream, now: datetime) -> tuple[JobState, ...]:
        state = FakeLauncher.state
        return () if state is None else (replace(FakeLauncher.job, state=state),)

    def launch(
        self,
        stream: Stream,
        options: Sequence[str] = (),
        variables: Mapping[str, str] | None = None,
    ) -> str:
        FakeLauncher.done.append(" ".join(["launch", *options]))
        FakeLauncher.given.append(dict(variables or {}))
        if FakeLauncher.meanwhile is not None:
            FakeLauncher.meanwhile()
        if FakeLauncher.fails is not None:
            raise FakeLauncher.fails
        return "process 1"

    def stop(self, stream: Stream) -> None:
        FakeLauncher.done.append("stop")

    def kill(self, stream: Stream) -> None:
        FakeLauncher.done.append("kill")

    def logs(self, stream: Stream, lines: int, of: LogOf = "driver") -> list[str]:
        if FakeLauncher.log_fails is not None:
            raise FakeLauncher.log_fails
        return ["its last words"]


@pytest.fixture(autouse=True)
def fresh() -> None:
    FakeLauncher.forget()


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """The layout of a stream whose driver has the lease."""
    layout = Layout.of(str(tmp_path), "shop")
    lease(layout, JOB.owner, epoch=JOB.epoch)
    return layout


LAUNCHER = f"{__name__}:FakeLauncher"


def about(root: Path) -> dict[str, Any]:
    """The arguments of an operator for the stream."""
    return {"file": "shop.yml", "name": "shop", "root": str(root), "launcher": LAUNCHER}


def operator(root: Path, **more: Any) -> StreamOperator:
    policy = RestartPolicy(crashes=3)
    return StreamOperator(task_id="supervise", budget=policy, **about(root), **more)


def run(run_id: str, map_index: int = -1) -> Any:
    named = {"dag_id": "shop__stream", "run_id": run_id, "task_id": "supervise"}
    task = SimpleNamespace(**named, map_index=map_index)
    return {"ti": task, "run_id": run_id}


def executed(root: Path, run_id: str = "run 1", map_index: int = -1) -> TaskDeferred:
    with pytest.raises(TaskDeferred) as deferred:
        operator(root).execute(run(run_id, map_index))
    return deferred.value


def kept(
    token: str = "t", crashes: Sequence[datetime] = (), of_machine: Sequence[datetime] = ()
) -> dict[str, Any]:
    """What the task has kept while it was deferred."""
    times = {"crashes": crashes, "of_machine": of_machine}
    texts = {name: [at.isoformat() for at in each] for name, each in times.items()}
    return {"token": token, "until": NOON.isoformat(), "counted": None, **texts}


def down(condition: str) -> dict[str, Any]:
    """The event of the trigger, and the state of the job that it has observed."""
    FakeLauncher.state = STATES[condition]
    progress = "" if condition == "absent" else f"fused {JOB.epoch} [7] None None"
    return {"event": "down", "condition": condition, "fingerprint": progress}


def resumed(root: Path, event: dict[str, Any], crashes: Sequence[datetime] = ()) -> TaskDeferred:
    with pytest.raises(TaskDeferred) as deferred:
        operator(root).resume(run("run 1"), event, **kept(crashes=crashes))
    return deferred.value
