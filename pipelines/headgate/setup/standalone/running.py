"""Starts and ends a local Airflow."""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from headgate.commands import install_extra, shell_command
from headgate.errors import HeadgateError
from headgate.lake.storage.private_file import create_private
from headgate.machine.process_tree import guard, owner, presence
from headgate.machine.process_tree.guard import Child, Order
from headgate.machine.process_tree.owner import ProcessTree
from headgate.setup.standalone.settings import (
    ADMIN,
    COMPONENTS,
    DATABASE,
    AirflowSettings,
    NoAirflowError,
    RunsAlreadyError,
    StandaloneError,
    environment,
    secrets_of,
)

UP_WITHIN = 300.0  # seconds, on a busy machine; about 30 on an idle one
LOGS = "components"
TASK_LOGS = "logs"
TASK_LOGS_KEPT = 15 * 86_400.0  # seconds, as in Airflow's Helm chart; Airflow never removes logs
# Seconds for the components, then for other processes. A scheduler waits until its running tasks
# end, although they have no API server to report to any more. A driver ends after its batch.
_GRACES = (8.0, 60.0)
_HEALTHY = ("metadatabase", "scheduler", "triggerer", "dag_processor")


@dataclass
class Standalone:
    """An Airflow that this process has started. It ends with this process, unless it was started
    ``detached``. ``password`` is None if an earlier start created it."""

    settings: AirflowSettings
    password: str | None
    tree: ProcessTree

    def failure(self, again: str) -> StandaloneError:
        """Why it has ended without a request. ``again`` is the command that starts it again."""
        code, logs = self.tree.code or 0, self.settings.home / LOGS
        if code < 0:
            why = f"was ended by signal {-code}"
            if code == -signal.SIGKILL:
                why = "was killed, by somebody or by the system for lack of memory"
            return StandaloneError(
                f"process {self.tree.pid}, which kept Airflow running, {why}; all that it ran has "
                "ended, too",
                remedy=f"start it again: {again}",
            )
        return StandaloneError(
            f"Airflow has ended:\n{_last(logs / guard.LOG, self.settings.database)}",
            remedy=f"start it again: {again}   (the logs of its components: {logs})",
        )


def start(
    settings: AirflowSettings,
    more: Mapping[str, Child],
    *,
    detached: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> Standalone:
    """Start Airflow's components and the children ``more``, and return when all components answer.
    ``say`` receives the components that are not ready.

    Raises NoAirflowError, RunsAlreadyError, or StandaloneError with the last line of the failed
    component's log; then nothing is left running.
    """
    require_airflow()
    home = settings.home
    home.mkdir(parents=True, exist_ok=True)
    home.chmod(0o700)  # its configuration has keys in it
    require_no_other(home)
    password = _new_password(settings.passwords)

    def is_up() -> bool:
        if waited_for := _not_healthy(settings.address):
            say(f"starting Airflow: waiting for {', '.join(waited_for)}")
        return not waited_for

    try:
        order = _order(settings, more, owned=not detached)
        tree = owner.start(order, is_up, lambda code: _failure(settings, code), UP_WITHIN)
    except BaseException:
        if password is not None:
            # It was never shown.
            settings.passwords.unlink()
        raise
    return Standalone(settings, password, tree)


def require_airflow() -> None:
    if find_spec("airflow") is None:
        raise NoAirflowError(
            "Airflow is not installed in this environment",
            remedy=f"install it: {install_extra('airflow')}",
        )


def require_no_other(home: Path) -> None:
    """Raises RunsAlreadyError if an Airflow runs in this home."""
    if (other := presence.running(home)) is not None:
        raise RunsAlreadyError(
            f"an Airflow runs already at {other.told['address']} (process {other.guard})",
            remedy=f"end it: {shell_command('down')}",
        )


def _new_password(file: Path) -> str | None:
    """Create the password, readable by this user only; None if the file has one: it stays valid.
    For a file without one, Airflow would make a password and write it to its log."""
    password = secrets.token_urlsafe(12)
    return password if create_private(file, json.dumps({ADMIN: password}), _has_password) else None


def _has_password(text: str) -> bool:
    with suppress(ValueError):
        kept = json.loads(text)
        return isinstance(kept, dict) and bool(kept.get(ADMIN))
    return False


def _order(settings: AirflowSettings, more: Mapping[str, Child], owned: bool) -> Order:
    airflow = (sys.executable, "-m", "airflow")
    components = {name: Child((*airflow, name, *options)) for name, options in COMPONENTS.items()}
    return Order(
        folder=str(settings.home),
        work=str(settings.work),
        environment=environment(settings, os.environ),
        prepare=(*airflow, "db", "migrate"),
        children={**more, **components},
        tell={"address": settings.address},
        graces=_GRACES,
        logs=LOGS,
        expires={TASK_LOGS: TASK_LOGS_KEPT},
        owned=owned,
    )


def _failure(settings: AirflowSettings, code: int | None) -> HeadgateError:
    logs = settings.home / LOGS
    if code == guard.IN_USE:
        return RunsAlreadyError(
            f"another process is starting an Airflow for {settings.home}",
            remedy=f"wait for it, or end it: {shell_command('down')}",
        )
    if code == guard.NOT_PREPARED:
        where = "its database" if settings.database is None else f"the database of {DATABASE}"
        log = logs / f"{guard.PREPARE}.log"
        correct = "" if settings.database is None else f"correct {DATABASE}; "
        return StandaloneError(
            f"Airflow cannot use {where}:\n{_last(log, settings.database)}",
            remedy=f"{correct}its output: {log}",
        )
    if code is not None:
        return StandaloneError(
            f"Airflow ended while it started:\n{_last(logs / guard.LOG, settings.database)}",
            remedy=f"the logs of its components: {logs}",
        )
    return StandaloneError(
        f"Airflow does not answer at {settings.address} after {UP_WITHIN:.0f} s",
        remedy=f"the logs of its components: {logs}",
    )


def _last(log: Path, secret: str | None) -> str:
    """The last error line of a log, or its last line, without the address of the database and its
    password. SQLAlchemy ends each error with the address of a page about it, which is left out."""
    with suppress(OSError):
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
        lines = [line for line in lines if line and not line.startswith("(Background on this")]
        relevant = [line for line in lines if "rror" in line] or lines
        last = relevant[-1] if relevant else ""
        for each in secrets_of(secret) if secret else ():
            last = last.replace(each, "…")
        return last
    return ""


def _not_healthy(address: str) -> list[str]:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"{address}/api/v2/monitor/health", timeout=5) as answer:
            health = json.load(answer)
    except (OSError, ValueError):
        return ["its API server"]
    parts = {part: (health.get(part) or {}).get("status") for part in _HEALTHY}
    return [part.replace("_", " ") for part, status in parts.items() if status != "healthy"]
