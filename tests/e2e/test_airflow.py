"""Airflow as people run it: scheduler, triggerer, dag-processor and API server as real processes,
over a real driver. Whatever is done to them, one driver runs, or none where a stop was asked."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import psutil
import pytest

from headgate.ledger.by_id import by_id
from headgate.savepoints.savepoint import Savepoint
from headgate.savepoints.store import savepoints
from headgate.spec.load import load
from headgate.spec.model import Pipeline
from headgate.storage.layout import Layout
from headgate.storage.ownership import Owner
from headgate.supervision import local
from headgate.supervision.finality import final_up_to
from headgate.supervision.hours import between, of, whole
from headgate.supervision.job_state import JobState, probe
from tests.support import browser
from tests.support.airflow import Airflow, running_airflow
from tests.support.drivers import PATIENCE, REPOSITORY
from tests.support.events import reading, readings
from tests.support.landing import ARRIVED, Landing
from tests.support.readings import NOON, declare
from tests.support.rounds import IN_FULL
from tests.support.tables import read

pytestmark = [pytest.mark.e2e, pytest.mark.recovery]
in_full = pytest.mark.skipif(not IN_FULL, reason="only `make chaos` kills all parts of Airflow")

SHIPPED = REPOSITORY / "pipelines/headgate/templates/shop/dags"
GOLD, BY_HOUR = "readings__gold", "readings__per_minute_by_hour"
STREAM, CONTROL, SUPERVISE = "readings__stream", "readings__control", "supervise"
KILLS = 20
RACING = """
from airflow.sdk import DAG
from headgate.airflow import StreamOperator

with DAG("racing", schedule=None, max_active_runs=2):
    StreamOperator(task_id="supervise", **{about})
"""
BROKEN = "pipeline: broken\nsources: 3\n"


class Site:
    """A project with one pipeline, and its DAGs in a real Airflow."""

    def __init__(self, folder: Path, airflow: Airflow, declared: Pipeline) -> None:
        self.airflow = airflow
        self.folder = folder
        self.declared = declared
        self.layout = Layout.of(str(folder / "lake"), declared.name)
        self.landing = Landing(folder / "landing")
        self._delivered = 0
        self._events = 0

    def deliver(self, *events: bytes, arrived: datetime = ARRIVED) -> int:
        """A file more; returns how many events there are now."""
        self._delivered += 1
        sent = events or tuple(readings(40, seed=self._delivered))
        self.landing.write(f"{self._delivered:03d}.json", b"\n".join(sent), arrived)
        self._events += len(sent)
        return self._events

    @property
    def layout_root(self) -> str:
        return str(self.folder / "lake")

    @property
    def jobs(self) -> tuple[JobState, ...]:
        return probe(self.layout, datetime.now(UTC))

    @property
    def owner(self) -> Owner | None:
        """Of the one driver that runs, with its tables open."""
        alive = [job for job in self.jobs if job.is_alive and job.is_open]
        assert len(alive) <= 1
        return alive[0].owner if alive else None

    @property
    def batch(self) -> int:
        return max((job.n or 0 for job in self.jobs), default=0)

    def drivers(self) -> list[int]:
        """Every process that runs the pipeline, whoever knows of it."""
        found = []
        for process in psutil.process_iter(["pid", "cmdline"]):
            line = process.info["cmdline"] or []
            if "headgate.cli" in line and str(self.declared.file) in line:
                found.append(process.info["pid"])
        return found

    def wait_for_owner(self, other_than: Owner | None = None) -> Owner:
        self.airflow.wait(
            lambda: self.owner not in (None, other_than),
            f"no driver came: {self.airflow.said(STREAM, SUPERVISE)}",
        )
        owner = self.owner
        assert owner is not None
        return owner

    def absorbs(self) -> float:
        """A file that is delivered now becomes gold; returns after how many seconds."""
        began, batch = time.monotonic(), self.batch
        self.deliver()
        self.airflow.wait(lambda: self.batch > batch, "what was delivered is not absorbed")
        return time.monotonic() - began

    def is_supervised(self) -> bool:
        task = self.airflow.task(STREAM, SUPERVISE)
        return task is not None and task["state"] == "deferred"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("airflow")
    (folder / "landing").mkdir()
    declared = declare(folder / "pipelines", folder / "landing")
    shutil.copytree(SHIPPED, folder / "dags")
    with running_airflow(folder / "home", folder / "dags") as airflow:
        place = Site(folder, airflow, declared)
        try:
            place.deliver()
            airflow.switch_on(STREAM)
            airflow.switch_on(CONTROL)
            place.wait_for_owner()
            yield place
        finally:
            local.kill(place.layout)


def test_a_driver_that_is_killed_is_replaced(site: Site) -> None:
    airflow = site.airflow
    airflow.wait(site.is_supervised, "the task never deferred")
    site.absorbs()
    first = site.wait_for_owner()
    os.kill(first.pid, signal.SIGKILL)
    seconds = site.absorbs()
    assert site.wait_for_owner() != first
    assert seconds < PATIENCE
    assert "its driver is dead" in airflow.said(STREAM, SUPERVISE)


@in_full
def test_a_frozen_driver_is_replaced_and_ended(site: Site) -> None:
    frozen = site.wait_for_owner()
    os.kill(frozen.pid, signal.SIGSTOP)
    site.wait_for_owner(other_than=frozen)
    site.absorbs()
    assert frozen.is_dead()


def test_a_cleared_task_adopts_the_driver(site: Site) -> None:
    before = site.wait_for_owner()
    site.airflow.wait(site.is_supervised, "the task never deferred")
    site.airflow.clear(STREAM, SUPERVISE)
    site.airflow.wait(lambda: not site.is_supervised(), "the task was not cleared")
    site.airflow.wait(site.is_supervised, "the task never deferred again")
    site.absorbs()
    assert site.owner == before


@pytest.mark.parametrize("state", ["failed", pytest.param("success", marks=in_full)])
def test_a_marked_task_ends_the_stream_until_it_is_started_again(site: Site, state: str) -> None:
    site.wait_for_owner()
    site.airflow.wait(site.is_supervised, "the task never deferred")
    runs = len(site.airflow.runs(STREAM))
    site.airflow.set_state(STREAM, SUPERVISE, state)
    site.airflow.wait(lambda: not site.drivers(), "the driver runs on")
    site.airflow.wait(lambda: len(site.airflow.runs(STREAM)) > runs, "no run came after it")
    site.airflow.wait(
        lambda: "rests: somebody asked it to stop" in site.airflow.said(STREAM, SUPERVISE),
        "nobody says that it rests",
    )
    assert site.drivers() == []
    site.airflow.trigger(CONTROL, action="start")
    site.wait_for_owner()
    site.absorbs()


def test_a_second_run_waits(site: Site) -> None:
    before = site.wait_for_owner()
    site.airflow.wait(site.is_supervised, "the task never deferred")
    second = site.airflow.trigger(STREAM)
    site.absorbs()
    states = {run["dag_run_id"]: run["state"] for run in site.airflow.runs(STREAM)}
    assert states.pop(second) == "queued"
    assert "running" in states.values()
    assert site.drivers() == [before.pid]
    site.airflow.ask("DELETE", f"/dags/{STREAM}/dagRuns/{quote(second, safe='')}")


@in_full
def test_two_runs_race_for_a_stream(site: Site) -> None:
    """Of a DAG by hand, while nothing runs; the lease decides."""
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
    site.absorbs()
    airflow.ask("PATCH", f"/dags/{STREAM}", {"is_paused": False})
    airflow.wait(site.is_supervised, "the task never deferred again")
    assert len(site.drivers()) == 1
    (site.folder / "dags/racing.py").unlink()
    for run in runs:
        path = f"/dags/racing/dagRuns/{quote(run, safe='')}"
        airflow.ask("PATCH", path, {"state": "failed"})
    # The run that came last was ended by hand, so the stream rests.
    airflow.wait(lambda: not site.drivers(), "the driver runs on")
    airflow.trigger(CONTROL, action="start")
    site.wait_for_owner()


@in_full
def test_a_worker_is_killed_while_it_starts_a_driver(site: Site) -> None:
    airflow, before = site.airflow, site.wait_for_owner()
    airflow.wait(site.is_supervised, "the task never deferred")
    os.kill(before.pid, signal.SIGKILL)
    airflow.wait(lambda: set(site.drivers()) - {before.pid}, "nobody starts a driver")
    for process in airflow.workers(STREAM, SUPERVISE):
        process.kill()
    site.wait_for_owner(other_than=before)
    airflow.wait(site.is_supervised, "nobody looks after it")
    site.absorbs()
    assert len(site.drivers()) == 1


@in_full
def test_time_from_a_kill_to_the_next_gold(site: Site) -> None:
    took = []
    for _ in range(KILLS):
        driver = site.wait_for_owner()
        site.airflow.wait(site.is_supervised, "the task never deferred")
        os.kill(driver.pid, signal.SIGKILL)
        took.append(site.absorbs())
        # A new attempt has a new budget of crashes, and does not wait between them.
        site.airflow.wait(site.is_supervised, "the task never deferred again")
        site.airflow.clear(STREAM, SUPERVISE)
        site.airflow.wait(lambda: not site.is_supervised(), "the task was not cleared")
    print("seconds from a kill to gold:", sorted(round(seconds, 1) for seconds in took))
    assert sorted(took)[int(0.95 * KILLS)] < 60


@in_full
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("component", ["triggerer", "scheduler"])
def test_a_component_that_ends_takes_no_driver_with_it(
    site: Site, component: str, how: signal.Signals
) -> None:
    before = site.wait_for_owner()
    site.airflow.wait(site.is_supervised, "the task never deferred")
    site.airflow.kill(component, how=how)
    site.absorbs()
    assert site.owner == before
    site.airflow.start(component)
    os.kill(before.pid, signal.SIGKILL)
    site.wait_for_owner(other_than=before)
    site.absorbs()


@in_full
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_all_of_airflow_ends(site: Site, how: signal.Signals) -> None:
    before = site.wait_for_owner()
    site.airflow.kill(how=how)
    site.absorbs()
    site.airflow.start()
    site.airflow.wait(site.is_supervised, "nobody looks after it")
    assert site.owner == before
    assert site.drivers() == [before.pid]


@in_full
def test_a_paused_dag_leaves_its_stream_alone(site: Site) -> None:
    """It runs on; once it has died, it is started when the DAG is on again."""
    before = site.wait_for_owner()
    site.airflow.wait(site.is_supervised, "the task never deferred")
    site.airflow.ask("PATCH", f"/dags/{STREAM}", {"is_paused": True})
    site.absorbs()
    assert site.owner == before
    (stream,) = json.loads(site.airflow.get("/headgate/api/streams"))["streams"]
    assert (stream["is_paused"], stream["life"]["is_alive"]) == (True, True)
    os.kill(before.pid, signal.SIGKILL)
    site.airflow.wait(lambda: not site.is_supervised(), "nobody sees that it is dead")
    assert site.drivers() == []
    site.airflow.ask("PATCH", f"/dags/{STREAM}", {"is_paused": False})
    site.wait_for_owner(other_than=before)
    site.absorbs()


@in_full
def test_restart_and_savepoint_from_the_form(site: Site) -> None:
    before = site.wait_for_owner()
    site.airflow.trigger(CONTROL, action="stop with savepoint")
    site.airflow.wait(lambda: not site.drivers(), "the driver runs on")
    path = Layout.savepoint("").rpartition("/")[0]
    site.airflow.wait(lambda: site.layout.storage.list(path), "no savepoint was taken")
    site.airflow.trigger(CONTROL, action="start from savepoint")
    site.wait_for_owner(other_than=before)
    site.absorbs()


@pytest.mark.parametrize(
    ("dag", "tasks"),
    [
        ("headgate__health", {"freshness", "backlog", "late", "quarantine", "ledger"}),
        ("headgate__maintenance", {"reconcile", "savepoint", "compact", "vacuum", "ledger"}),
    ],
)
def test_the_dags_that_all_streams_share(site: Site, dag: str, tasks: set[str]) -> None:
    """Beside the running driver. The hostile events are far more than a healthy stream has."""
    airflow, driver = site.airflow, site.wait_for_owner()
    airflow.ask("PATCH", f"/dags/{dag}", {"is_paused": False})
    run = airflow.trigger(dag)
    over = {"success", "failed"}
    airflow.wait(
        lambda: (
            set(airflow.states(dag, run).values()) <= over
            and len(airflow.states(dag, run)) == len(tasks)
        ),
        f"{dag} does not end: {airflow.states(dag, run)}",
    )
    failed = {task for (task, _), state in airflow.states(dag, run).items() if state == "failed"}
    assert failed == ({"late", "quarantine"} if dag == "headgate__health" else set())
    airflow.ask("PATCH", f"/dags/{dag}", {"is_paused": True})
    assert site.owner == driver
    if dag == "headgate__maintenance":
        taken = [each for each in savepoints(site.layout) if isinstance(each, Savepoint)]
        assert dag in {savepoint.note for savepoint in taken}


def test_the_task_leads_to_its_stream_and_to_sparks_log(site: Site) -> None:
    airflow, driver = site.airflow, site.wait_for_owner()
    airflow.wait(site.is_supervised, "the task never deferred")
    links = airflow.links(STREAM, SUPERVISE)
    assert links["Stream"] == f"/dags/{STREAM}/plugin/stream"
    assert "INFO" in airflow.get(links["Spark log"]) or "WARN" in airflow.get(links["Spark log"])
    (stream,) = json.loads(airflow.get("/headgate/api/streams"))["streams"]
    assert (stream["name"], stream["error"]) == ("readings", None)
    assert stream["life"]["condition"] == "running"
    (job,) = stream["life"]["jobs"]
    assert job["process"].split()[0] == str(driver.pid)


@pytest.mark.skipif(not browser.is_there, reason="needs the package chromium")
def test_the_page_in_a_browser(site: Site, tmp_path: Path) -> None:
    """As whoever opens it sees it: its scripts run, and the stream is there with its state."""
    site.wait_for_owner()
    login = f"{site.airflow.address}/auth/token/login?next=/headgate/"
    wanted = ("readings", "running", "Savepoint</button>")

    def is_shown() -> bool:
        shown = browser.dom_of(login, tmp_path / "profile")
        return all(words in shown for words in wanted)

    site.airflow.wait(is_shown, "the page does not show it")


def test_a_mistake_is_an_import_error_that_disturbs_no_dag(site: Site) -> None:
    broken = site.folder / "pipelines/broken.yml"
    broken.write_text(BROKEN)
    airflow = site.airflow
    airflow.wait(lambda: airflow.ask("GET", "/importErrors")["import_errors"], "it is not told")
    (error,) = airflow.ask("GET", "/importErrors")["import_errors"]
    assert f"{broken}:2" in error["stack_trace"]
    assert error["filename"] == "declarations.py"
    dag = airflow.ask("GET", f"/dags/{STREAM}")
    assert (dag["is_stale"], dag["has_import_errors"]) == (False, False)
    broken.unlink()
    airflow.wait(
        lambda: not airflow.ask("GET", "/importErrors")["import_errors"], "it does not go away"
    )


def test_a_finished_hour_is_a_run_of_what_follows(site: Site) -> None:
    """While the stream runs on: the shipped example counts the rows of each hour, once."""
    airflow, driver = site.airflow, site.wait_for_owner()

    def final() -> datetime | None:
        return final_up_to(site.layout, load(site.declared.file), "per_minute")

    def pass_by(hours: int) -> datetime:
        """The event clock goes on for so long; returns the end of the last hour that is over."""
        start = whole(final() or NOON) + timedelta(hours=hours, minutes=30)
        event = reading(f"after-{start:%F-%H}", start, site="North", value=1)
        site.deliver(event, arrived=start)
        airflow.wait(
            lambda: (reached := final()) and reached > start - timedelta(minutes=1), "no C"
        )
        return whole(start)

    def told() -> set[str]:
        return {str(run["partition_key"]) for run in airflow.runs(BY_HOUR)}

    for dag in (GOLD, BY_HOUR):
        airflow.switch_on(dag)
    first = pass_by(1)
    wanted = set(between(None, first))
    airflow.wait(lambda: told() >= wanted, f"{first} is not told of: {airflow.runs(GOLD)}")
    before = told()
    last = pass_by(3)
    wanted = before | set(between(first, last))
    assert len(wanted) == len(before) + 3
    airflow.wait(lambda: told() == wanted, f"{last} is not told of")
    airflow.wait(
        lambda: {run["state"] for run in airflow.runs(BY_HOUR)} == {"success"}, "a run fails"
    )
    assert len(airflow.runs(BY_HOUR)) == len(wanted)
    gold = read(site.folder / "lake", "gold/per_minute")
    for run in airflow.runs(BY_HOUR):
        start, end = of(run["partition_key"])
        rows = [row for row in gold if start < row["window_end"] <= end]
        assert airflow.returned(BY_HOUR, run["dag_run_id"], "count_rows") == len(rows)
        assert all(row["final"] for row in rows)
    assert site.owner == driver


def test_every_event_is_accounted_for(site: Site) -> None:
    """After all that was done to it."""
    events = site.deliver()
    site.airflow.wait(
        lambda: by_id(site.layout, load(site.declared.file)).rows == events, "not all is absorbed"
    )
    proof = by_id(site.layout, load(site.declared.file))
    assert proof.findings == ()
