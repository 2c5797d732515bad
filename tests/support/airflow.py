"""A real Airflow, on SQLite by default. Each component is its own process, which a test can
kill."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote

import psutil

from headgate.machine.process_tree.ports import free_port
from headgate.setup.standalone.settings import COMPONENTS, LOGGING
from tests.support.drivers import PATIENCE
from tests.support.lossy_proxy import LossyProxy


class Airflow:
    """Reads the DAGs of ``dags``. Every user of this machine is an admin."""

    def __init__(
        self,
        home: Path,
        dags: Path,
        database: str | None = None,
        killing: Path | None = None,
        proxy: LossyProxy | None = None,
    ) -> None:
        """``killing`` is a folder of failpoints. Each one kills the first process of a task that
        passes it. Tasks report to the API server through ``proxy``."""
        self._home = home
        self._port = free_port()
        address = f"http://127.0.0.1:{self._port}"
        self.address = address
        self.proxy = proxy
        reports_to = address
        if proxy is not None:
            proxy.target, reports_to = address, f"http://127.0.0.1:{proxy.port}"
        settings = {
            "CORE__DAGS_FOLDER": dags,
            "CORE__LOAD_EXAMPLES": False,
            "CORE__PARALLELISM": 2,
            "CORE__EXECUTION_API_SERVER_URL": f"{reports_to}/execution/",
            "CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": True,
            "API__HOST": "127.0.0.1",
            "API__PORT": self._port,
            "API__BASE_URL": address,
            "API__WORKERS": 1,
            "DAG_PROCESSOR__REFRESH_INTERVAL": 5,
            "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": 30,
            "SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": 5,
            # The tasks of a killed scheduler wait so long; the default is five minutes.
            "SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": 15,
            "LOGGING__LOGGING_CONFIG_CLASS": LOGGING,
        }
        if database is not None:
            settings["DATABASE__SQL_ALCHEMY_CONN"] = database
        self._environment = {
            # Tests of DAGs set such variables, to import Airflow as a library in this process.
            **{k: v for k, v in os.environ.items() if not k.lstrip("_").startswith("AIRFLOW")},
            "AIRFLOW_HOME": str(home),
            **{f"AIRFLOW__{name}": str(value) for name, value in settings.items()},
            **({"HEADGATE_FAILPOINT": f"@{killing}"} if killing else {}),
        }
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._token = ""

    def migrate(self) -> None:
        done = self._airflow("db", "migrate")
        assert done.wait(PATIENCE) == 0, self.log("db")

    def cli(self, *arguments: str) -> None:
        """Run a command of Airflow's command line to its end."""
        done = self._airflow(*arguments)
        assert done.wait(PATIENCE) == 0, self.log(arguments[0])

    def start(self, *components: str) -> None:
        for name in components or COMPONENTS:
            self._running[name] = self._airflow(name, *COMPONENTS[name])
        if "api-server" in (components or COMPONENTS):
            self.wait(lambda: self._health() is not None, "the API server never answered")
            with urllib.request.urlopen(f"{self.address}/auth/token", timeout=30) as answer:
                self._token = json.load(answer)["access_token"]

    def kill(self, *components: str, how: signal.Signals = signal.SIGKILL) -> None:
        """Kill the components and what they started, as a machine that shuts down does."""
        for name in components or tuple(self._running):
            process = self._running.pop(name)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, how)
            process.wait(PATIENCE)

    def signal(self, component: str, number: signal.Signals) -> None:
        """Send a signal to a component and to what it started, such as SIGSTOP: it is busy."""
        os.killpg(self._running[component].pid, number)

    def end(self) -> None:
        self.kill()

    def log(self, component: str) -> str:
        return (self._home / f"{component}.out").read_text(errors="replace")[-4000:]

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """The answer of the public API. Raises HTTPError."""
        content = self.get(f"/api/v2{path}", method, body)
        return json.loads(content) if content else None

    def get(self, path: str, method: str = "GET", body: object = None) -> str:
        """The answer of the API server to a user who has logged in. Raises HTTPError."""
        request = urllib.request.Request(
            f"{self.address}{path}",
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                content: bytes = answer.read()
        except HTTPError as error:
            if error.code >= 500:
                error.add_note(self.log("api-server"))
            raise
        return content.decode()

    def links(self, dag: str, task: str) -> dict[str, str]:
        """The links of the task in the newest run."""
        run = quote(self.runs(dag)[0]["dag_run_id"], safe="")
        path = f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}/links"
        found: dict[str, str] = self.ask("GET", path)["extra_links"]
        return found

    def switch_on(self, dag: str) -> None:
        self.wait(lambda: self._has(dag), f"{dag} never appeared")
        self.ask("PATCH", f"/dags/{dag}", {"is_paused": False})

    def trigger(self, dag: str, **conf: object) -> str:
        run = self.ask("POST", f"/dags/{dag}/dagRuns", {"logical_date": None, "conf": conf})
        return str(run["dag_run_id"])

    def runs(self, dag: str) -> list[dict[str, Any]]:
        """The runs, the newest first."""
        found = self.ask("GET", f"/dags/{dag}/dagRuns?order_by=-run_after")
        runs: list[dict[str, Any]] = found["dag_runs"]
        return runs

    def task(self, dag: str, task: str, back: int = 0) -> dict[str, Any] | None:
        """The task in the newest run, or in the run that is ``back`` runs older."""
        runs = self.runs(dag)
        if len(runs) <= back:
            return None
        run = quote(runs[back]["dag_run_id"], safe="")
        path = f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}"
        try:
            found: dict[str, Any] = self.ask("GET", path)
        except urllib.error.HTTPError:
            return None
        return found

    def workers(self, dag: str, task: str) -> list[psutil.Process]:
        """The processes that run the task now: its own, and its parent, which belongs to the
        executor."""
        found = self.task(dag, task)
        title = f"airflow worker -- {found and found['id']}"
        # A title is not split into words as a command is.
        own = [p for p in psutil.process_iter(["cmdline"]) if title in _words(p.info["cmdline"])]
        assert own, f"no process is {title}"
        return [one for process in own for one in (process, process.parent()) if one]

    def states(self, dag: str, run: str) -> dict[tuple[str, int], str]:
        """The state of every task of a run, by task id and map index."""
        path = f"/dags/{dag}/dagRuns/{quote(run, safe='')}/taskInstances"
        found = self.ask("GET", path)["task_instances"]
        return {(task["task_id"], task["map_index"]): str(task["state"]) for task in found}

    def returned(
        self, dag: str, run: str, task: str, *, key: str = "return_value", map_index: int = -1
    ) -> Any:
        path = f"/dags/{dag}/dagRuns/{quote(run, safe='')}/taskInstances/{task}/xcomEntries/{key}"
        found = self.ask("GET", f"{path}?deserialize=true&map_index={map_index}")
        return found["value"]

    def asks(self, dag: str, run: str, number: int = 0) -> bool:
        """Whether ``approve`` waits for the answer of a person to a question: the first, or a later
        one."""
        return self.states(dag, run).get(("approve", number)) == "awaiting_input"

    def question(self, dag: str, run: str, number: int = 0) -> str:
        return str(self.ask("GET", _question(dag, run, number))["body"])

    def answer(
        self, dag: str, run: str, number: int = 0, *, answer: str = "Approve", **given: str
    ) -> None:
        said = {"chosen_options": [answer], "params_input": given}
        self.ask("PATCH", _question(dag, run, number), said)

    def approve_if_asked(self, dag: str, run: str, number: int = 0, **given: str) -> None:
        """Call this until the answer counts. If an answer arrives before the scheduler knows that
        the task waits, Airflow fails the task and asks again."""
        if self.asks(dag, run, number):
            self.answer(dag, run, number, **given)

    def set_state(self, dag: str, task: str, state: str) -> None:
        run = quote(self.runs(dag)[0]["dag_run_id"], safe="")
        path = f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}"
        self.ask("PATCH", path, {"new_state": state})

    def clear(self, dag: str, task: str, run: str | None = None) -> None:
        """Clear a task of the newest run. With ``run``, that of this run, and what follows it."""
        wanted = {"task_ids": [task], "only_failed": False, "dry_run": False}
        wanted |= {"dag_run_id": run or self.runs(dag)[0]["dag_run_id"], "reset_dag_runs": True}
        wanted["include_downstream"] = run is not None
        self.ask("POST", f"/dags/{dag}/clearTaskInstances", wanted)

    def said(self, dag: str, task: str, back: int = 0) -> str:
        """The log of the task's last attempt, in the newest run or in the run that is ``back`` runs
        older."""
        found = self.task(dag, task, back)
        if found is None:
            return ""
        run = quote(found["dag_run_id"], safe="")
        path = f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}/logs/{found['try_number']}"
        content = self.ask("GET", f"{path}?full_content=true")["content"]
        return "\n".join(text for line in content for text in _texts(line))

    def wait(
        self, condition: Callable[[], object], otherwise: str, patience: float = PATIENCE
    ) -> None:
        until = time.monotonic() + patience
        while not _holds(condition):
            for name, process in self._running.items():
                assert process.poll() is None, f"{name} has ended: {self.log(name)}"
            assert time.monotonic() < until, otherwise
            time.sleep(0.5)

    def _has(self, dag: str) -> bool:
        try:
            return bool(self.ask("GET", f"/dags/{dag}"))
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return False

    def _health(self) -> Any:
        try:
            with urllib.request.urlopen(f"{self.address}/api/v2/monitor/health", timeout=5) as got:
                return json.load(got)
        except OSError:
            return None

    def _airflow(self, *arguments: str) -> subprocess.Popen[bytes]:
        with (self._home / f"{arguments[0]}.out").open("ab") as sink:
            return subprocess.Popen(
                [sys.executable, "-m", "airflow", *arguments],
                env=self._environment,
                cwd=self._home,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )


@contextmanager
def running_airflow(
    home: Path,
    dags: Path,
    database: str | None = None,
    killing: Path | None = None,
    proxy: LossyProxy | None = None,
) -> Iterator[Airflow]:
    home.mkdir()
    airflow = Airflow(home, dags, database, killing, proxy)
    try:
        airflow.migrate()
        airflow.start()
        yield airflow
    finally:
        airflow.end()


def _words(command: list[str] | None) -> str:
    return " ".join(command or ())


def _texts(line: dict[str, Any]) -> list[str]:
    """The texts of a line of a log: what it says, and the exceptions that it shows."""
    errors = line.get("error_detail") or ()
    return [str(line.get("event", "")), *(str(each.get("exc_value", "")) for each in errors)]


def _question(dag: str, run: str, number: int) -> str:
    run = quote(run, safe="")
    return f"/dags/{dag}/dagRuns/{run}/taskInstances/approve/{number}/hitlDetails"


def _holds(condition: Callable[[], object]) -> bool:
    """Whether it holds; not if the API server is busy, or its database is locked."""
    try:
        return bool(condition())
    except HTTPError as error:
        if error.code < 500:
            raise
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        pass
    return False
