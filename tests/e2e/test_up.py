"""``headgate up`` starts a whole Airflow with the demo's stream, and ``down`` leaves nothing of
it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import psutil
import pytest

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.insight.ledger.by_id import by_id
from headgate.insight.status.health import HealthContext
from headgate.lake.storage.layout import Layout
from headgate.supervision.job_state import probe
from tests.support import postgres
from tests.support.rounds import IN_FULL, in_full

pytestmark = pytest.mark.e2e

HEADGATE = (sys.executable, "-m", "headgate.cli")
PATIENCE = 300.0  # seconds
SECRET = "not-for-logs"


class Place:
    """A root, and what ``headgate up`` creates in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "_airflow"
        self.said = root.parent / "said"

    def up(self, *options: str, database: str | None = None) -> subprocess.Popen[bytes]:
        told = {} if database is None else {"HEADGATE_AIRFLOW_DB": database}
        command = [*HEADGATE, "up", "--port", "0", "--root", str(self.root), *options]
        with self.said.open("wb") as sink:
            return subprocess.Popen(
                command,
                env=os.environ | told,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def down(self) -> str:
        done = subprocess.run(
            [*HEADGATE, "down", "--root", str(self.root)],
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        )
        return done.stdout

    def wait_for(self, words: str, process: subprocess.Popen[bytes]) -> str:
        wait(lambda: re.search(words, self.output) or process.poll() is not None, self.output)
        found = re.search(words, self.output)
        assert found, self.output
        return found[found.lastindex or 0]

    @property
    def output(self) -> str:
        return self.said.read_text()

    @property
    def password(self) -> str:
        kept: dict[str, str] = json.loads((self.home / "passwords.json").read_text())
        return kept["admin"]

    @property
    def declared(self) -> Pipeline:
        return load(self.home / "demo/pipelines/auctions.yml")

    @property
    def layout(self) -> Layout:
        return Layout.of(str(self.home / "demo/lake"), "auctions")

    @property
    def batch(self) -> int:
        jobs = probe(self.layout, datetime.now(UTC))
        return max((each.n for job in jobs for each in job.sources.values()), default=0)

    def processes(self) -> list[psutil.Process]:
        """All processes that use this place, in an argument, as working folder or as an open
        file."""
        return [p for p in psutil.process_iter() if p.pid != os.getpid() and self._uses(p)]

    def component(self, name: str) -> list[psutil.Process]:
        """The processes that were started for a component of Airflow and live."""
        found = []
        for process in self.processes():
            with suppress(psutil.Error):
                words = process.cmdline()
                if words[1:4] == ["-m", "airflow", name] and process.pid == os.getsid(process.pid):
                    found.append(process)
        return found

    def command_lines(self) -> list[str]:
        lines = []
        for process in self.processes():
            with suppress(psutil.Error):  # it has just ended
                lines.append(" ".join(process.cmdline()))
        return lines

    def _uses(self, process: psutil.Process) -> bool:
        here = str(self.root)
        with suppress(psutil.Error):
            if process.status() == psutil.STATUS_ZOMBIE:
                return False
            used = [*process.cmdline(), process.cwd(), *(f.path for f in process.open_files())]
            return any(here in each for each in used)
        return False


def wait(condition: Callable[[], object], otherwise: str, patience: float = PATIENCE) -> None:
    until = time.monotonic() + patience
    while not condition():
        assert time.monotonic() < until, otherwise
        time.sleep(0.5)


def token(address: str, password: str) -> str:
    request = urllib.request.Request(
        f"{address}/auth/token",
        json.dumps({"username": "admin", "password": password}).encode(),
        {"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        found: str = json.load(answer)["access_token"]
    return found


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path / "lake")
    try:
        yield place
    finally:
        for process in place.processes():
            with suppress(psutil.Error):
                process.kill()


@pytest.fixture
def database() -> Iterator[str | None]:
    """The address of a PostgreSQL; None, which means SQLite, if PostgreSQL is not installed."""
    if not postgres.is_there:
        yield None
        return
    with postgres.running_postgres() as address:
        yield address


def test_up_runs_a_stream_and_down_ends_it(place: Place, database: str | None) -> None:
    up = place.up("--detached", database=database)
    assert up.wait(PATIENCE) == 0, place.output
    assert f"password   {place.password}   (shown this once)" in place.output
    shows_the_dashboard(place)
    serves_until_it_is_ended(place, batch=0)


@in_full
def test_up_is_killed_and_comes_again(place: Place, database: str | None) -> None:
    """The first start uses SQLite, the second one PostgreSQL if it is installed: the database of
    Airflow holds no state of the stream. A short run proves in tests/unit/process_tree that a
    process tree ends with its owner, and in test_broker.py that a broker's JVM does."""
    first = place.up()
    place.wait_for(r"\(shown this once\)", first)
    wait(lambda: place.batch > 1, "nothing came to the tables")
    first.kill()
    first.wait(PATIENCE)
    wait(lambda: not place.processes(), f"they are left: {place.processes()}")
    before = place.batch
    second = place.up("--detached", database=database)
    assert second.wait(PATIENCE) == 0, place.output
    assert "as it was shown" in place.output
    assert place.password not in place.output
    serves_until_it_is_ended(place, before)


def listens_on_loopback_only(place: Place) -> None:
    """Every process of the tree, also those of a driver."""
    found = [
        (process.pid, each.laddr.ip)
        for process in place.processes()
        for each in sockets(process)
        if each.status == psutil.CONN_LISTEN
    ]
    assert found
    loopback = ("127.0.0.1", "::1", "::ffff:127.0.0.1")
    assert [each for each in found if each[1] not in loopback] == []


def sockets(process: psutil.Process) -> list[Any]:
    """The sockets of a process; none if it has ended meanwhile."""
    with suppress(psutil.NoSuchProcess):
        return list(process.net_connections("inet"))
    return []


def lives(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def survives_its_scheduler(place: Place) -> None:
    """What a killed scheduler has left ends, and another one is started. A short run proves it in
    tests/unit/machine/process_tree/test_guard.py."""
    (before,) = place.component("scheduler")
    workers = before.children(recursive=True)
    assert workers
    before.kill()
    wait(lambda: place.component("scheduler") not in ([], [before]), "no other scheduler came")
    assert [each for each in workers if lives(each)] == []


def shows_the_log_of_a_task_that_runs(place: Place, address: str) -> None:
    client = httpx.Client(
        base_url=f"{address}/api/v2",
        trust_env=False,
        timeout=60,
        headers={"Authorization": f"Bearer {token(address, place.password)}"},
    )
    with client:
        runs = "/dags/auctions__stream/dagRuns"
        wait(lambda: client.get(runs).json()["dag_runs"], "no run came")
        run = quote(client.get(runs).json()["dag_runs"][0]["dag_run_id"], safe="")
        task = f"{runs}/{run}/taskInstances/supervise"
        wait(lambda: client.get(task).json()["state"] == "deferred", "nothing is supervised")
        wait(lambda: "  batch " in client.get(f"{task}/logs/1").text, "its log is not shown")
        assert "Could not read served logs" not in client.get(f"{task}/logs/1").text


def shows_the_dashboard(place: Place) -> None:
    """The dashboard has its own password, which is kept as a hash."""
    found = re.search(r"dashboard +(http://\S+)\npassword +(\S+) ", place.output)
    assert found, place.output
    with httpx.Client(base_url=found[1], trust_env=False, timeout=60) as client:
        assert client.get("/api/overview").status_code == 401
        assert client.post("/login", data={"password": found[2]}).status_code == 303
        wait(lambda: client.get("/api/gold/auctions/bids_per_minute").is_success, "no gold")
        assert client.get("/api/overview").json()["pipelines"][0]["condition"] == "running"
    assert not any(found[2] in line for line in place.command_lines())


def serves_until_it_is_ended(place: Place, batch: int) -> None:
    (address,) = re.findall(r"Airflow +(http://127\.0\.0\.1:\d+)", place.output)
    assert token(address, place.password)
    with pytest.raises(urllib.error.HTTPError, match="401"):
        token(address, "another")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{address}/api/v2/dags", timeout=30)
    taken = place.up()
    assert taken.wait(PATIENCE) == 1
    assert f"an Airflow runs already at {address}" in place.output
    wait(lambda: place.batch > batch, "nothing comes to the tables")
    if IN_FULL:
        survives_its_scheduler(place)
    shows_the_log_of_a_task_that_runs(place, address)
    listens_on_loopback_only(place)
    lines = place.command_lines()
    assert lines
    assert not any(SECRET in line or place.password in line for line in lines)
    assert "has ended" in place.down()
    # An exiting process has no environment any more, but its files stay open for a moment.
    wait(lambda: not place.processes(), "a process is left", patience=30.0)
    assert "no Airflow runs" in place.down()
    now = datetime.now(UTC)
    stopped = HealthContext(place.declared, place.layout, probe(place.layout, now), now)
    assert (stopped.ended, stopped.is_meant_to_run) == ("stopped", False), "no alert fires"
    proof = by_id(place.layout, place.declared)
    assert (proof.findings, proof.rows > 0) == ((), True)
    logs = [
        path for path in place.home.rglob("*.log") if SECRET in path.read_text(errors="replace")
    ]
    assert logs == []


@in_full
def test_a_database_that_is_not_there(place: Place) -> None:
    """A short run tests this in tests/unit/setup/standalone/test_running.py, and in
    tests/unit/machine/process_tree/test_guard.py that no process is left."""
    nowhere = f"postgresql://airflow:{SECRET}@127.0.0.1:1/none"
    ended = place.up(database=nowhere)
    assert ended.wait(PATIENCE) == 7
    assert "the database of HEADGATE_AIRFLOW_DB" in place.output
    assert SECRET not in place.output
    assert not (place.home / "passwords.json").exists()
    assert not place.processes()
