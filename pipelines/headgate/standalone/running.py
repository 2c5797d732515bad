"""Starts an Airflow of one's own and holds on to it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from headgate.commands import ROOT, shell_command
from headgate.standalone import guard, passwords, presence
from headgate.standalone.errors import NoAirflowError, RunsAlreadyError, StandaloneError
from headgate.standalone.settings import ADMIN, COMPONENTS, Settings, environment

UP_WITHIN = 300.0  # seconds, on a busy machine; about 30 on an idle one
_ENDS_WITHIN = 120.0  # seconds
_LOOK_EVERY = 0.5  # seconds
_HEALTHY = ("metadatabase", "scheduler", "triggerer", "dag_processor")


@dataclass
class Standalone:
    """An Airflow that was started here. It ends with this process, unless it was started
    ``detached``. ``password`` is None where one was made before."""

    settings: Settings
    password: str | None
    _guard: subprocess.Popen[bytes]

    @property
    def is_alive(self) -> bool:
        return self._guard.poll() is None

    @property
    def pid(self) -> int:
        return self._guard.pid

    def end(self) -> None:
        """Airflow and the streams it started; blocks until all are gone."""
        self._guard.terminate()
        self._guard.wait(_ENDS_WITHIN)


def start(
    settings: Settings,
    more: Mapping[str, Sequence[str]] | None = None,
    once: Mapping[str, Sequence[str]] | None = None,
    *,
    detached: bool = False,
    patience: float = UP_WITHIN,
    say: Callable[[str], None] = lambda _: None,
) -> Standalone:
    """Start Airflow's components, and ``more`` commands beside them, and return when all answer.

    What is in ``once`` runs a single time. ``say`` gets what is waited for.

    Raises NoAirflowError, RunsAlreadyError, or StandaloneError with the last words of what did
    not come up; then nothing is left running.
    """
    require_airflow()
    home = settings.home
    (home / guard.LOGS).mkdir(parents=True, exist_ok=True)
    home.chmod(0o700)  # its configuration has keys in it
    if (other := presence.running(home)) is not None:
        raise RunsAlreadyError(
            f"an Airflow runs already at {other.address} (process {other.guard})",
            remedy=f"end it: {shell_command('down', ROOT)}",
        )
    presence.clear(home)
    password = passwords.made(settings.passwords, ADMIN)
    launched = _launch(settings, dict(more or {}), dict(once or {}), owned=not detached)
    try:
        _await_health(settings, launched, patience, say)
    except BaseException:
        launched.terminate()
        launched.wait(_ENDS_WITHIN)
        if password is not None:
            # Nobody has seen it.
            settings.passwords.unlink()
        raise
    return Standalone(settings, password, launched)


def require_airflow() -> None:
    if find_spec("airflow") is None:
        raise NoAirflowError(
            "Airflow is not installed in this environment",
            remedy='install it: pip install "headgate[airflow]"',
        )


def _launch(
    settings: Settings,
    more: dict[str, Sequence[str]],
    once: dict[str, Sequence[str]],
    owned: bool,
) -> subprocess.Popen[bytes]:
    airflow = (sys.executable, "-m", "airflow")
    order = {
        "home": str(settings.home),
        "work": str(settings.work),
        "environment": environment(settings, os.environ),
        "owned": owned,
        "prepare": (*airflow, "db", "migrate"),
        "components": {**{name: (*airflow, name) for name in COMPONENTS}, **more},
        "beside": list(more),
        "once": once,
        "tell": {"address": settings.address},
    }
    # A session of its own: a Ctrl-C of the terminal is for the owner, who then ends the guard.
    with (settings.home / guard.LOGS / "guard.log").open("ab") as sink:
        launched = subprocess.Popen(
            [sys.executable, "-m", "headgate.standalone.guard"],
            stdin=subprocess.PIPE,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
        )
    assert launched.stdin is not None
    with suppress(BrokenPipeError):  # why it has ended is seen below
        launched.stdin.write(json.dumps(order).encode() + b"\n")
        launched.stdin.flush()
    return launched


def _await_health(
    settings: Settings,
    launched: subprocess.Popen[bytes],
    patience: float,
    say: Callable[[str], None],
) -> None:
    deadline = time.monotonic() + patience
    while waited_for := _not_healthy(settings.address):
        say(f"starting Airflow: waiting for {', '.join(waited_for)}")
        code = launched.poll()
        if code == guard.IN_USE:
            raise RunsAlreadyError(
                f"another process is starting an Airflow for {settings.home}",
                remedy=f"wait for it, or end it: {shell_command('down', ROOT)}",
            )
        if code is not None or time.monotonic() > deadline:
            raise _failure(settings, code, patience)
        time.sleep(_LOOK_EVERY)


def _failure(settings: Settings, code: int | None, patience: float) -> StandaloneError:
    logs = settings.home / guard.LOGS
    if code == guard.NO_DATABASE:
        where = "its database" if settings.database is None else "the database that is named"
        return StandaloneError(
            f"Airflow cannot use {where}:\n{_last(logs / 'database.log', settings.database)}",
            remedy=f"all that it said: {logs / 'database.log'}",
        )
    if code is not None:
        return StandaloneError(
            f"Airflow ended while it started:\n{_last(logs / 'guard.log', settings.database)}",
            remedy=f"what its components said: {logs}",
        )
    return StandaloneError(
        f"Airflow does not answer at {settings.address} after {patience:.0f} s",
        remedy=f"what its components said: {logs}",
    )


def _last(log: Path, secret: str | None) -> str:
    """The last line of a log that says what happened, without the address of the database."""
    with suppress(OSError):
        lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
        told = [line for line in lines if "rror" in line] or [line for line in lines if line]
        said = told[-1] if told else ""
        return said.replace(secret, "…") if secret else said
    return ""


def _not_healthy(address: str) -> list[str]:
    try:
        with urllib.request.urlopen(f"{address}/api/v2/monitor/health", timeout=5) as answer:
            told = json.load(answer)
    except (OSError, ValueError):
        return ["its API server"]
    parts = {part: (told.get(part) or {}).get("status") for part in _HEALTHY}
    return [part.replace("_", " ") for part, status in parts.items() if status != "healthy"]
