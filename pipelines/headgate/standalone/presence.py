"""Whether an Airflow runs for a home, and ending it, for those who did not start it."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from headgate.commands import ROOT, shell_command
from headgate.standalone import family
from headgate.standalone.errors import StandaloneError
from headgate.standalone.guard import COMPONENTS_GRACE, DOCUMENT, DRIVERS_GRACE, LOCK

_SLACK = 15.0  # seconds over what the guard needs at most
_TELLS_WITHIN = 5.0  # seconds between taking the lock and telling of oneself


@dataclass(frozen=True)
class Presence:
    """Who runs: ``address`` is where Airflow's pages are, ``since`` in seconds since the machine's
    start."""

    guard: int
    address: str
    since: float
    sessions: tuple[int, ...]


def running(home: Path) -> Presence | None:
    """Raises StandaloneError where somebody holds the lock and does not tell who it is."""
    deadline = time.monotonic() + _TELLS_WITHIN
    while is_locked(home):
        if (found := _read(home)) is not None:
            return found
        if time.monotonic() > deadline:
            raise StandaloneError(
                f"{home} is locked by a process that does not tell who it is",
                f"see who it is: fuser -v {shlex.quote(str(home / LOCK))}",
            )
        time.sleep(family.LOOK_EVERY)
    return None


def end(home: Path) -> bool:
    """End what runs for ``home``, streams and all, and wait for it; False where nothing did.

    What a guard left that was killed is ended, too. Raises StandaloneError if it does not end.
    """
    found = running(home)
    if found is not None:
        with suppress(ProcessLookupError):
            os.kill(found.guard, signal.SIGTERM)
        deadline = time.monotonic() + COMPONENTS_GRACE + DRIVERS_GRACE + _SLACK
        while is_locked(home):
            if time.monotonic() > deadline:
                raise StandaloneError(
                    f"process {found.guard}, the guard of {home}, does not end",
                    f"kill -9 {found.guard}; then: {shell_command('down', ROOT)}",
                )
            time.sleep(family.LOOK_EVERY)
    return clear(home) or found is not None


def clear(home: Path) -> bool:
    """End what a guard left behind that was killed; False where there is nothing."""
    left = _read(home)
    if left is None:
        return False

    def everybody() -> list[psutil.Process]:
        return family.members(home, left.sessions, left.since)

    family.end(everybody, COMPONENTS_GRACE)
    (home / DOCUMENT).unlink(missing_ok=True)
    return True


def is_locked(home: Path) -> bool:
    try:
        lock = os.open(home / LOCK, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _read(home: Path) -> Presence | None:
    try:
        told = json.loads((home / DOCUMENT).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return Presence(told["guard"], told["address"], told["since"], tuple(told["sessions"]))
