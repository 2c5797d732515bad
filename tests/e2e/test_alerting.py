"""A real stream, watched by a real Prometheus: its driver is killed, and an alert is sent."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import psutil
import pytest

from headgate.insight.metrics.alerts import rules
from headgate.lake.storage.layout import Layout
from headgate.machine.process_tree import owner, presence
from headgate.machine.process_tree.guard import Child, Order
from headgate.machine.process_tree.ports import free_port
from headgate.supervision.job_state import probe
from tests.support.prometheus import Monitoring, are_installed, monitored
from tests.support.rounds import in_full
from tests.support.waiting import wait_until
from tests.unit.insight.ledger.conftest import DECLARATION

pytestmark = [
    pytest.mark.e2e,
    in_full,
    pytest.mark.skipif(not are_installed(), reason="Prometheus or Alertmanager is missing"),
]

HEADGATE = (sys.executable, "-m", "headgate.cli")
PATIENCE = 120.0
AT_ONCE = re.compile(r"for: \d+m")


class Project:
    """The tiny pipeline, with a landing folder. Its driver also serves metrics."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.layout = Layout.of(str(folder / "lake"), "tiny")
        self.driver_port, self.port = free_port(), free_port()
        self.landing = folder / "landing"
        self.landing.mkdir()
        file = folder / "tiny.yml"
        declared = DECLARATION.replace("path: landing", f"path: {self.landing}")
        file.write_text(f"{declared}metrics: {{port: {self.driver_port}}}\n")

    def headgate(self, *arguments: str) -> str:
        done = subprocess.run(
            [*HEADGATE, *arguments, "--root", str(self.folder / "lake")],
            cwd=self.folder,
            env=os.environ | {"HEADGATE_DRIVER_MEMORY": "1g"},
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def land(self, name: str, count: int) -> None:
        """Write a file of ``count`` events, one of them invalid."""
        now = datetime.now(UTC).isoformat()
        events = [{"id": f"{name}-{n}", "at": now, "amount": n + 1} for n in range(count - 1)]
        lines = "".join(json.dumps(event) + "\n" for event in [*events, {"id": name}])
        hidden = self.landing / f".{name}"
        hidden.write_text(lines)
        hidden.rename(self.landing / f"{name}.json")

    def kill(self) -> None:
        """Kill the driver and its JVM, as a machine that runs out of memory does."""
        (job,) = probe(self.layout, datetime.now(UTC))
        driver = psutil.Process(job.owner.pid)
        family = [driver, *driver.children(recursive=True)]
        for process in family:
            process.kill()
        psutil.wait_procs(family, timeout=20)

    @property
    def is_alive(self) -> bool:
        return any(job.is_alive for job in probe(self.layout, datetime.now(UTC)))


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    made = Project(tmp_path)
    try:
        yield made
    finally:
        if made.is_alive:
            made.kill()


@pytest.fixture
def watcher(project: Project) -> Iterator[subprocess.Popen[bytes]]:
    """A process of ``headgate metrics``."""
    command = [*HEADGATE, "metrics", "tiny.yml", "--port", str(project.port)]
    with (project.folder / "metrics.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=project.folder, stdout=log, stderr=log)
    yield process
    process.terminate()
    assert process.wait(20) == 0


@pytest.fixture
def monitoring(
    project: Project, watcher: subprocess.Popen[bytes], tmp_path: Path
) -> Iterator[Monitoring]:
    folder = tmp_path / "monitoring"
    folder.mkdir()
    fast = AT_ONCE.sub("for: 0s", rules())
    targets = {"headgate": project.port, "driver": project.driver_port}
    with monitored(folder, fast, targets) as found:
        yield found


def test_an_alert_fires_when_the_driver_is_killed_and_is_resolved_when_it_is_back(
    project: Project, monitoring: Monitoring
) -> None:
    receiver = monitoring.receiver
    project.land("first", 10)
    project.headgate("start", "tiny.yml")
    ours = '{job="headgate"}'
    read = f"headgate_read_records_total{ours}"
    runs = f"headgate_running{ours}"
    _until(monitoring, runs, 1)
    _until(monitoring, read, 10)
    driver = 'headgate_records_total{job="driver", outcome="quarantined"}'
    _until(monitoring, driver, 1)
    assert "HeadgateDown" not in receiver.firing()

    project.kill()
    wait_until(lambda: receiver.has("HeadgateDown", "firing"), "no alert fires", PATIENCE)
    alert = next(a for a in receiver.alerts if a["labels"]["alertname"] == "HeadgateDown")
    assert alert["labels"]["pipeline"] == "tiny"
    assert alert["annotations"]["command"] == "headgate status 'tiny'"
    assert monitoring.value(read) == 10, "the counts are there while the driver is dead"
    assert monitoring.value('up{job="driver"}') == 0

    project.land("second", 5)
    project.headgate("start", "tiny.yml")
    wait_until(lambda: receiver.has("HeadgateDown", "resolved"), "it is not resolved", PATIENCE)
    _until(monitoring, read, 15)
    _until(monitoring, 'headgate_read_records_total{job="driver"}', 15)
    assert monitoring.value(f"resets({read}[10m])") == 0, "a restart resets no counter"
    latency = 'headgate_arrival_to_gold_seconds_count{job="headgate"}'
    _until(monitoring, latency, 2)


def test_a_driver_that_is_stopped_raises_no_alert(project: Project, monitoring: Monitoring) -> None:
    project.land("first", 100)  # one in a hundred is invalid: below the limit of the alert
    project.headgate("start", "tiny.yml")
    _until(monitoring, 'headgate_running{job="headgate"}', 1)
    project.headgate("stop", "tiny.yml")
    _until(monitoring, 'headgate_condition{job="headgate", condition="resting"}', 1)
    _until(monitoring, 'headgate_running{job="headgate"}', 0)
    assert monitoring.query("ALERTS") == {}
    assert monitoring.receiver.firing() == set()


def test_a_driver_that_ends_with_its_airflow_raises_no_alert(
    project: Project, monitoring: Monitoring, tmp_path: Path
) -> None:
    """`headgate down` ends the tree of processes that `headgate up` has started."""
    project.land("first", 100)
    folder = tmp_path / "tree"
    run = (*HEADGATE, "run", "tiny.yml", "--root", str(project.folder / "lake"))
    order = Order(
        *(str(folder), str(project.folder), os.environ | {"HEADGATE_DRIVER_MEMORY": "1g"}),
        children={"driver": Child(run)},
        tell={},
        graces=(60.0, 5.0),
    )
    tree = owner.start(order, lambda: True, lambda _: AssertionError("it has ended"), PATIENCE)
    try:
        _until(monitoring, 'headgate_running{job="headgate"}', 1)
        assert presence.end(folder) is not None
    finally:
        tree.end()
    # A supervisor starts the stream again, so it is not at rest; but nobody has to look after it.
    _until(monitoring, 'headgate_condition{job="headgate", condition="ended"}', 1)
    _until(monitoring, 'headgate_meant_to_run{job="headgate"}', 0)
    assert monitoring.query("ALERTS") == {}
    assert monitoring.receiver.firing() == set()


def test_a_scrape_that_is_open_outlives_the_driver_without_harm(project: Project) -> None:
    project.land("first", 10)
    project.headgate("start", "tiny.yml")
    url = f"http://127.0.0.1:{project.driver_port}/metrics"
    with urllib.request.urlopen(url, timeout=20) as answer:
        answer.read(10)
        project.kill()
    project.headgate("start", "tiny.yml")

    def is_served() -> bool:
        with urllib.request.urlopen(url, timeout=20) as answer:
            return b'headgate_running{pipeline="tiny"} 1.0' in answer.read()

    wait_until(is_served, "the new driver does not serve", PATIENCE)
    project.headgate("stop", "tiny.yml")


def _until(monitoring: Monitoring, query: str, value: float) -> None:
    wait_until(lambda: monitoring.value(query) == value, f"{query} is not {value}", PATIENCE)
