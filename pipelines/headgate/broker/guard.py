"""Runs the broker's JVM and ends it when its owner ends, however that dies.

Run as a file, with the standard library alone, so that it is small and quick to start. The first
line of its stdin is its order, as JSON. The other end of stdin is the owner's: when that end is
closed, by whatever death, an owned guard ends the JVM. SIGTERM and SIGINT end it too.

The lock of the folder is held by the guard and, inherited, by the JVM: it is free when both are
gone. While it is held, ``broker.json`` tells who they are.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

IN_USE = 75
"""The exit code of a guard that found the folder locked; no JVM of Kafka ends with it."""

LOCK = "lock"
DOCUMENT = "broker.json"
JVM_LOG = "logs/jvm.log"

_GRACE = 10.0  # seconds that a JVM has to close its files
_LOCK_WITHIN = 1.0  # seconds: who only looks whether it is held holds it for a moment


class Guard:
    def __init__(self, order: dict[str, Any], lock: int) -> None:
        self._order = order
        self._lock = lock
        self._child: subprocess.Popen[bytes] | None = None
        self._ending = threading.Event()

    def end(self, *_: object) -> None:
        """Ask the JVM to end, and kill it when it does not."""
        self._ending.set()
        child = self._child
        if child is not None and child.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGTERM)
            killer = threading.Timer(_GRACE, child.kill)
            killer.daemon = True
            killer.start()

    def watch(self) -> None:
        while os.read(0, 4096):
            pass
        self.end()

    def serve(self) -> int:
        """The exit code of the JVM; 0 where its end was asked for."""
        if not Path(self._order["formatted"]).exists():
            code = self._run(self._order["format"], subprocess.DEVNULL)
            if code:
                return code
        return self._run(self._order["serve"])

    def _run(self, command: Sequence[str], out: int | None = None) -> int:
        self._tell(None)
        if self._ending.is_set():
            return 0
        self._child = child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, pass_fds=[self._lock]
        )
        if self._ending.is_set():
            self.end()
        self._tell(child.pid)
        code = child.wait()
        if self._ending.is_set():
            return 0
        return code if code >= 0 else 128 - code  # a signal, as shells write it

    def _tell(self, jvm: int | None) -> None:
        told = {"schema": 1, **self._order["tell"], "guard": os.getpid(), "jvm": jvm}
        _write(DOCUMENT, json.dumps(told) + "\n")


def main() -> int:
    order = json.loads(sys.stdin.buffer.readline())
    os.chdir(order["folder"])
    lock = os.open(LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    if not _take(lock):
        return IN_USE
    guard = Guard(order, lock)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, guard.end)
    _begin_logs()
    for name, text in order["files"].items():
        _write(name, text)
    if order["owned"]:
        threading.Thread(target=guard.watch, daemon=True).start()
    try:
        return guard.serve()
    finally:
        with suppress(OSError):
            Path(DOCUMENT).unlink()


def _take(lock: int) -> bool:
    deadline = time.monotonic() + _LOCK_WITHIN
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        else:
            return True


def _begin_logs() -> None:
    """What is in the logs is of this run; the last run's is kept once."""
    with suppress(FileNotFoundError):
        Path("logs/server.log").replace("logs/server-before.log")
    log = os.open(JVM_LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
    for descriptor in (1, 2):
        os.dup2(log, descriptor)
    os.close(log)


def _write(name: str, text: str) -> None:
    """Whole or not at all, and for this user's eyes: properties hold passwords."""
    draft = f"{name}.tmp"
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:  # noqa: PTH123
        file.write(text)
    Path(draft).replace(name)


if __name__ == "__main__":
    sys.exit(main())
