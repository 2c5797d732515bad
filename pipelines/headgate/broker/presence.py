"""Whether a broker runs on a folder, and ending it, for those who did not start it."""

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

from headgate.broker import guard
from headgate.broker.errors import BrokerError

_ENDS_WITHIN = 30.0  # seconds
_LOOK_EVERY = 0.05  # seconds
_TELLS_WITHIN = 2.0  # seconds between taking the lock and telling of oneself


@dataclass(frozen=True)
class Presence:
    """A broker that runs, or is about to. ``jvm`` is None until there is one."""

    guard: int
    jvm: int | None
    servers: str
    sasl_servers: str | None

    @property
    def pid(self) -> int:
        return self.jvm or self.guard


def running(folder: Path) -> Presence | None:
    """The broker that runs on ``folder``, whoever started it; None where none does."""
    deadline = time.monotonic() + _TELLS_WITHIN
    while _is_locked(folder):
        if (found := _read(folder)) is not None:
            return found
        if time.monotonic() > deadline:
            raise BrokerError(
                f"{folder} is locked by a process that does not tell who it is",
                f"See who it is: fuser -v {shlex.quote(str(folder / guard.LOCK))}",
            )
        time.sleep(_LOOK_EVERY)
    return None


def end(folder: Path) -> Presence | None:
    """End the broker that runs on ``folder`` and wait until it has; None where none does.

    Raises BrokerError if it cannot be ended.
    """
    found = running(folder)
    if found is None:
        return None
    if not _signal(found.guard, signal.SIGTERM, guard.__file__):
        _signal(found.jvm, signal.SIGTERM, _KAFKA)
    for number in (signal.SIGKILL, None):
        deadline = time.monotonic() + _ENDS_WITHIN
        while _is_locked(folder) and time.monotonic() < deadline:
            time.sleep(_LOOK_EVERY)
        if not _is_locked(folder):
            return found
        if number:
            _signal(found.jvm, number, _KAFKA)
    raise BrokerError(
        f"process {found.pid}, the broker on {folder}, does not end",
        f"Kill it: kill -9 {found.pid} {found.guard}",
    )


_KAFKA = "kafka.Kafka"


def _signal(pid: int | None, number: signal.Signals, named: str) -> bool:
    """Only to the process that was meant: by now the pid may be that of another."""
    with suppress(psutil.Error, ProcessLookupError):
        if pid is not None and named in psutil.Process(pid).cmdline():
            os.kill(pid, number)
            return True
    return False


def _is_locked(folder: Path) -> bool:
    try:
        lock = os.open(folder / guard.LOCK, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


def _read(folder: Path) -> Presence | None:
    try:
        told = json.loads((folder / guard.DOCUMENT).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return Presence(told["guard"], told["jvm"], told["servers"], told["sasl_servers"])
