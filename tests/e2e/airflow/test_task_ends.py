"""Whatever is done to the task that supervises a stream, one driver runs."""

from __future__ import annotations

import json
import os
import signal
from urllib.parse import quote

import pytest

from tests.support.airflow_site import CONTROL, STREAM, SUPERVISE, Site
from tests.support.rounds import in_full

pytestmark = [pytest.mark.e2e, pytest.mark.recovery]
RACING = """
from airflow.sdk import DAG
from headgate.airflow import StreamOperator

with DAG("racing", schedule=None, max_active_runs=2):
    StreamOperator(task_id="supervise", **{about})
"""


def test_a_cleared_task_adopts_the_driver(site: Site) -> None:
    before = site.wait_for_owner()
    site.airflow.wait(site.is_supervised, "the task never deferred")
    site.airflow.clear(STREAM, SUPERVISE)
    site.airflow.wait(lambda: not site.is_supervised(), "the task was not cleared")
    site.airflow.wait(site.is_supervised, "the task never deferred again")
    site.processes_a_file()
    assert site.owner == before


@in_full
@pytest.mark.parametrize("state", ["failed", pytest.param("success", marks=in_full)])
def test_a_marked_task_ends_the_stream_until_it_is_started_again(site: Site, state: str) -> None:
    site.wait_for_owner()
    site.airflow.wait(site.is_supervised, "the task never deferred")
    runs = len(site.airflow.runs(STREAM))
    site.airflow.set_state(STREAM, SUPERVISE, state)
    site.airflow.wait(lambda: not site.drivers(), "the driver runs on")
    site.airflow.wait(lambda: len(site.airflow.runs(STREAM)) > runs, "no run came after it")
    site.airflow.wait(
        lambda: "is stopped on request" in site.airflow.said(STREAM, SUPERVISE),
        "nobody says that it rests",
    )
    assert site.drivers() == []
    site.airflow.trigger(CONTROL, action="start")
    site.wait_for_owner()
    site.processes_a_file()


@pytest.mark.parametrize(
    ("triggerer", "state"),
    [
        ("busy", "failed"),
        pytest.param("started", "success", marks=in_full),
        pytest.param("started", "failed", marks=in_full),
        pytest.param("ended", "success", marks=in_full),
    ],
)
def test_a_marked_run_ends_a_stream_that_was_stopped_before(
    site: Site, triggerer: str, state: str
) -> None:
    """The next run begins at once: before a busy triggerer, or after one that has just started. The
    same task has seen a stop and a start before."""
    airflow = site.airflow
    site.wait_for_owner()
    airflow.wait(site.is_supervised, "the task never deferred")
    site.stop_and_start()
    run = airflow.runs(STREAM)[0]["dag_run_id"]
    if triggerer == "busy":
        airflow.signal("triggerer", signal.SIGSTOP)
    else:
        airflow.kill("triggerer")
    if triggerer == "started":
        said = airflow.said(STREAM, SUPERVISE)
        airflow.start("triggerer")
        airflow.wait(lambda: airflow.said(STREAM, SUPERVISE) != said, "it never watched again")
    airflow.ask("PATCH", f"/dags/{STREAM}/dagRuns/{quote(run, safe='')}", {"state": state})
    airflow.wait(lambda: not site.drivers(), "the driver runs on")
    airflow.wait(lambda: airflow.runs(STREAM)[0]["dag_run_id"] != run, "no run came after it")
    airflow.signal("triggerer", signal.SIGCONT) if triggerer == "busy" else None
    if triggerer == "ended":
        airflow.start("triggerer")
    airflow.wait(
        lambda: "is stopped on request" in airflow.said(STREAM, SUPERVISE),
        "nobody says that it rests",
    )
    assert site.drivers() == []
    airflow.trigger(CONTROL, action="start")
    site.wait_for_owner()
    site.processes_a_file()


def test_a_second_run_waits(site: Site) -> None:
    before = site.wait_for_owner()
    site.airflow.wait(site.is_supervised, "the task never deferred")
    second = site.airflow.trigger(STREAM)
    site.processes_a_file()
    states = {run["dag_run_id"]: run["state"] for run in site.airflow.runs(STREAM)}
    assert states.pop(second) == "queued"
    assert "running" in states.values()
    assert site.drivers() == [before.pid]
    site.airflow.ask("DELETE", f"/dags/{STREAM}/dagRuns/{quote(second, safe='')}")


@in_full
def test_two_runs_race_for_a_stream(site: Site) -> None:
    """They are manual runs of another DAG, started while no driver runs. The lease decides."""
    airflow, before = site.airflow, site.wait_for_owner()
    airflow.wait(site.is_supervised, "the task never deferred")
    about = {"file": str(site.declared.file), "name": "readings", "root": site.layout_root}
    (site.folder / "dags/racing.py").write_text(RACING.format(about=about))
    airflow.switch_on("racing")
    airflow.ask("PATCH", f"/dags/{STREAM}", {"is_paused": True})
    os.kill(before.pid, signal.SIGKILL)
    runs = [airflow.trigger("racing") for _ in range(2)]
    site.wait_for_owner(other_than=before)
    airflow.wait(
        lambda: all(airflow.states("racing", run) == {(SUPERVISE, -1): "deferred"} for run in runs),
        "not both look after it",
    )
    assert len(site.drivers()) == 1
    site.processes_a_file()
    airflow.ask("PATCH", f"/dags/{STREAM}", {"is_paused": False})
    airflow.wait(site.is_supervised, "the task never deferred again")
    assert len(site.drivers()) == 1
    (site.folder / "dags/racing.py").unlink()
    for run in runs:
        path = f"/dags/racing/dagRuns/{quote(run, safe='')}"
        airflow.ask("PATCH", path, {"state": "failed"})
    # The last run was ended by hand, so the stream is stopped.
    airflow.wait(lambda: not site.drivers(), "the driver runs on")
    airflow.trigger(CONTROL, action="start")
    site.wait_for_owner()


@in_full
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_ends_while_it_starts_a_driver(site: Site, how: signal.Signals) -> None:
    airflow, before = site.airflow, site.wait_for_owner()
    airflow.wait(site.is_supervised, "the task never deferred")
    os.kill(before.pid, signal.SIGKILL)
    airflow.wait(lambda: set(site.drivers()) - {before.pid}, "nobody starts a driver")
    for process in airflow.workers(STREAM, SUPERVISE):
        process.send_signal(how)
    site.wait_for_owner(other_than=before)
    airflow.wait(site.is_supervised, "nobody looks after it")
    site.processes_a_file()
    assert len(site.drivers()) == 1


@in_full
def test_a_paused_dag_leaves_its_stream_alone(site: Site) -> None:
    """The stream keeps running. If its driver dies, it is started when the DAG is on again."""
    before = site.wait_for_owner()
    site.airflow.wait(site.is_supervised, "the task never deferred")
    site.airflow.ask("PATCH", f"/dags/{STREAM}", {"is_paused": True})
    site.processes_a_file()
    assert site.owner == before
    (stream,) = json.loads(site.airflow.get("/headgate/api/streams"))["streams"]
    assert (stream["pause"]["by"], stream["status"]["is_alive"]) == ("person", True)
    os.kill(before.pid, signal.SIGKILL)
    site.airflow.wait(lambda: not site.is_supervised(), "nobody sees that it is dead")
    assert site.drivers() == []
    site.airflow.ask("PATCH", f"/dags/{STREAM}", {"is_paused": False})
    site.wait_for_owner(other_than=before)
    site.processes_a_file()
