"""Runs the components and ends them, and the drivers they started, when its owner ends.

``python -m headgate.standalone.guard``. The first line of its stdin is its order, as JSON; the
other end of stdin is the owner's: when that is closed, by whatever death, an owned guard ends
everybody. SIGTERM and SIGINT do, too. A component that dies is started again.

The lock of the home is held by the guard alone; while it is held, ``up.json`` tells who runs.
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from headgate.standalone import family, task_logs
from headgate.storage.ownership import started
from headgate.supervision.rotation import keep_bounded

IN_USE = 75
NO_DATABASE = 76
LOCK = "lock"
DOCUMENT = "up.json"
LOGS = "components"
TASK_LOGS = "logs"

COMPONENTS_GRACE = 15.0  # seconds: a scheduler waits for its running tasks for as long as they run
DRIVERS_GRACE = 60.0  # seconds: a driver ends after its batch
AGAIN_AFTER = 5.0  # seconds before a component that died is started again
GROOM_EVERY = 3_600.0  # seconds
_POLL = 0.5  # seconds


@dataclass
class Guard:
    """``order``: home, environment, work, owned, prepare (a command), components (commands by
    name), beside (the names of those that do not wait for ``prepare``), once (commands by name that
    run at the start and are not started again), tell (what the document says of itself to others).
    """

    order: dict[str, Any]
    began: float = field(default_factory=lambda: started(psutil.Process()))
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    sessions: list[int] = field(default_factory=list)
    ending: threading.Event = field(default_factory=threading.Event)

    @property
    def home(self) -> Path:
        return Path(self.order["home"])

    def end(self, *_: object) -> None:
        self.ending.set()

    def watch(self) -> None:
        """Until the owner is gone."""
        while os.read(0, 4096):
            pass
        self.end()

    def serve(self) -> int:
        try:
            prepared = self._launch("database", self.order["prepare"])
            for name in self.order["beside"]:
                self.running[name] = self._launch(name, self.order["components"][name])
            for name, command in self.order["once"].items():
                self.running[name] = self._launch(name, command)
            while prepared.poll() is None and not self.ending.wait(_POLL):
                pass
            if not self.ending.is_set() and prepared.returncode:
                return NO_DATABASE
            self._keep()
        finally:
            self._end_all()
        return 0

    def _keep(self) -> None:
        names = ("guard", "database", *self.order["components"], *self.order["once"])
        keep_bounded([self.home / LOGS / f"{name}.log" for name in names])
        died: dict[str, float] = {}
        groomed = 0.0
        while not self.ending.wait(_POLL):
            now = time.monotonic()
            for name, command in self.order["components"].items():
                known = self.running.get(name)
                if known is not None and known.poll() is None:
                    continue
                if known is not None and now - died.setdefault(name, now) < AGAIN_AFTER:
                    continue
                died.pop(name, None)
                self.running[name] = self._launch(name, command)
            if time.time() - groomed > GROOM_EVERY:
                groomed = time.time()
                task_logs.groom(self.home / TASK_LOGS, groomed)

    def _launch(self, name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        with (self.home / LOGS / f"{name}.log").open("ab") as sink:
            launched = subprocess.Popen(
                command,
                env=self.order["environment"],
                cwd=self.order["work"],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )
        self.sessions.append(launched.pid)
        self._tell()
        return launched

    def _tell(self) -> None:
        told = {"schema": 1, **self.order["tell"], "guard": os.getpid(), "since": self.began}
        _write(self.home / DOCUMENT, json.dumps(told | {"sessions": self.sessions}) + "\n")

    def _end_all(self) -> None:
        """First those who would start a driver again, then the drivers."""

        def everybody() -> list[psutil.Process]:
            for process in self.running.values():
                process.poll()
            return family.members(self.home, self.sessions, self.began)

        def of_airflow(process: psutil.Process) -> bool:
            with suppress(ProcessLookupError):
                return os.getsid(process.pid) in self.sessions
            return False

        family.end(everybody, COMPONENTS_GRACE, of_airflow)
        family.end(everybody, DRIVERS_GRACE)


def main() -> int:
    order = json.loads(sys.stdin.buffer.readline())
    home = Path(order["home"])
    lock = os.open(home / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return IN_USE
    guard = Guard(order)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, guard.end)
    if order["owned"]:
        threading.Thread(target=guard.watch, daemon=True).start()
    try:
        return guard.serve()
    finally:
        with suppress(OSError):
            (home / DOCUMENT).unlink()


def _write(path: Path, text: str) -> None:
    draft = path.with_name(f"{path.name}.tmp")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


if __name__ == "__main__":
    sys.exit(main())
