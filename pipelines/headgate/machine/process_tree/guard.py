"""Runs the children of an order, and ends them and their descendants when the owner ends.

``python -m headgate.machine.process_tree.guard``. The first line of its stdin is its order; the
other end of stdin belongs to the owner: when it is closed, even by a kill, an owned guard ends the
tree. SIGTERM and SIGINT end the tree, too.

The guard holds the lock of the folder; meanwhile a document names the processes of the tree. A new
guard first ends what a killed guard has left.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Literal

import psutil
from filelock import Timeout

from headgate.machine.process_tree import members, presence
from headgate.machine.process_tree.members import ProcessSessions
from headgate.machine.process_tree.presence import Presence
from headgate.machine.process_tree.rotation import keep_bounded


@dataclass(frozen=True)
class Child:
    """``prepared``: it starts after the order's ``prepare``. ``ended`` is what happens when it
    ends: it is started again, it is left ended, or the whole tree ends."""

    command: Sequence[str]
    prepared: bool = True
    ended: Literal["again", "left", "all end"] = "again"


@dataclass(frozen=True)
class Order:
    """``folder`` is locked while the tree runs; ``logs`` is the folder in it for the output of each
    child. ``files`` are written to ``folder`` first, readable by this user only. ``tell`` is
    published in the document of the running tree. An ``owned`` tree ends with the process that
    started it.

    Members have ``graces`` seconds to end: first the sessions that children lead, then others.
    ``expires`` has folders, and the seconds after which files that are no longer written are
    removed.
    """

    folder: str
    work: str
    environment: Mapping[str, str]
    children: Mapping[str, Child]
    tell: Mapping[str, Any]
    graces: tuple[float, float]
    logs: str = "logs"
    prepare: Sequence[str] | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    expires: Mapping[str, float] = field(default_factory=dict)
    owned: bool = True

    def line(self) -> bytes:
        return json.dumps(asdict(self)).encode() + b"\n"

    @staticmethod
    def read(line: bytes) -> Order:
        document = json.loads(line)
        children = {name: Child(**child) for name, child in document.pop("children").items()}
        return Order(children=children, **document)

    @property
    def log_folder(self) -> Path:
        return Path(self.folder, self.logs)


_JUST_MADE = 600.0  # seconds


def expire(folder: Path, kept: float, now: float) -> None:
    """Remove files that were not written for ``kept`` seconds, then empty folders. ``now`` is in
    seconds since 1970."""
    for place, folders, files in os.walk(folder, topdown=False):
        for path in (Path(place, name) for name in files):
            with suppress(OSError):
                if path.lstat().st_mtime < now - kept:
                    path.unlink()
        for path in (Path(place, name) for name in folders):
            with suppress(OSError):  # not empty
                # Keep a new folder: a writer creates the folder first, then the log in it.
                if path.lstat().st_mtime < now - _JUST_MADE:
                    path.rmdir()


IN_USE = 75
NOT_PREPARED = 76
"""Exit codes of a guard if another guard holds its folder, and if ``prepare`` failed."""
LOG = "guard.log"
PREPARE = "prepare"

AGAIN_AFTER = 5.0  # seconds before a child that died is started again, and between tries
TIDY_EVERY = 3_600.0  # seconds
_POLL = 0.2  # seconds


@dataclass
class Guard:
    order: Order
    began: float = field(default_factory=lambda: members.started(psutil.Process()))
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    sessions: ProcessSessions = field(default_factory=ProcessSessions)
    since: float = inf
    ending: bool = False
    asked: bool = False

    @property
    def folder(self) -> Path:
        return Path(self.order.folder)

    @property
    def presence(self) -> Presence:
        pids = {name: process.pid for name, process in self.running.items()}
        details, within = self.order.tell, sum(self.order.graces)
        since = min(self.since, self.began)
        return Presence(
            *(os.getpid(), self.began, since, pids, self.sessions, within, details), self.asked
        )

    def end(self, *_: object) -> None:
        # A signal handler: with an Event, it could wait for ever for a lock of the code below.
        self.ending = self.asked = True

    def watch(self) -> None:
        """Wait until the owner has closed stdin, then end the tree."""
        while os.read(0, 4096):
            pass
        self.ending = True

    def take_over(self) -> None:
        """Take over the folder: end what a killed guard has left, then write the order's files."""
        if (left := presence.read(self.folder)) is not None:
            self.since = left.since
            if left.sessions.are_of_this_boot():
                self.sessions = left.sessions
        presence.announce(self.folder, self.presence)
        if left is not None:
            members.end(self._members, left.within)
        for name, text in self.order.files.items():
            presence.write(self.folder / name, text)
        for log in self.order.log_folder.glob("*.log"):
            if log.name != LOG and not log.stem.endswith("-before"):
                log.replace(log.with_name(f"{log.stem}-before.log"))

    def serve(self) -> int:
        """Run the tree. Returns 0 after a request to end, else the exit code of the child that
        ended the tree. Raises OSError if a child cannot be started for the first time."""
        try:
            self.take_over()
            for name, child in self.order.children.items():
                if not child.prepared:
                    self._launch(name, child.command)
            return self._prepare() or self._keep()
        finally:
            self._end_all()

    def _prepare(self) -> int:
        if self.order.prepare is None:
            return 0
        prepared = self._launch(PREPARE, self.order.prepare)
        while prepared.poll() is None and not self.ending:
            time.sleep(_POLL)
        return NOT_PREPARED if prepared.returncode else 0

    def _keep(self) -> int:
        names = ("guard", PREPARE, *self.order.children)
        keep_bounded([self.order.log_folder / f"{name}.log" for name in names])
        since: dict[str, float] = {}  # children that are to be started again, or to be announced
        tidied = 0.0
        while not self.ending:
            now = time.monotonic()
            for name, child in self.order.children.items():
                if (known := self.running.get(name)) is None:
                    self._launch(name, child.command)
                    continue
                code = known.poll()
                if code is not None and child.ended == "all end":
                    return code if code >= 0 else 128 - code  # a signal, as shells write it
                if code is not None and child.ended == "again":
                    since.setdefault(name, now)
                if name in since and now - since[name] >= AGAIN_AFTER:
                    since[name] = now
                    if self._goes_on(name, child, has_died=code is not None):
                        del since[name]
            if time.time() - tidied > TIDY_EVERY:
                tidied = time.time()
                for folder, kept in self.order.expires.items():
                    expire(self.folder / folder, kept, tidied)
            time.sleep(_POLL)
        return 0

    def _goes_on(self, name: str, child: Child, *, has_died: bool) -> bool:
        """Start a child that has died again, or announce one that runs. Returns False if this must
        be tried again: a full disk, for example, must not end the other children."""
        try:
            if has_died:
                self._end_session_of(self.running[name].pid)
                self._launch(name, child.command)
            else:
                presence.announce(self.folder, self.presence)
        except OSError as error:
            with suppress(OSError):  # the log may be on the same disk
                os.write(2, f"{name}: {error}\n".encode())
            return False
        return True

    def _launch(self, name: str, command: Sequence[str]) -> subprocess.Popen[bytes]:
        with (self.order.log_folder / f"{name}.log").open("ab") as sink:
            launched = subprocess.Popen(
                command,
                env={**self.order.environment, members.MARK: self.order.folder},
                cwd=self.order.work,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )
        self.running[name] = launched
        self.sessions = self.sessions.plus(psutil.Process(launched.pid))
        presence.announce(self.folder, self.presence)
        return launched

    def _end_session_of(self, leader: int) -> None:
        """End what a child has left in its session: it may hold a port, or do work that the next
        child does again."""

        def is_left(process: psutil.Process) -> bool:
            with suppress(ProcessLookupError, psutil.Error):
                return os.getsid(process.pid) == leader and self.sessions.have(process)
            return False

        members.end(self._members, self.order.graces[0], is_left)

    def _members(self) -> list[psutil.Process]:
        for process in self.running.values():
            process.poll()
        return self.presence.members(self.folder)

    def _end_all(self) -> None:
        """End the sessions of children first, because they restart others; then the others."""

        def in_sessions(process: psutil.Process) -> bool:
            with suppress(ProcessLookupError, psutil.Error):
                return self.sessions.have(process)
            return False

        if self.asked:
            with suppress(OSError):  # a full disk must not keep the tree from its end
                presence.announce(self.folder, self.presence)
        first, others = self.order.graces
        members.end(self._members, first, in_sessions)
        members.end(self._members, others)
        presence.clear(self.folder)


def main() -> int:
    order = Order.read(sys.stdin.buffer.readline())
    guard = Guard(order)
    lock = presence.lock(guard.folder)
    try:
        lock.acquire()
    except Timeout:
        return IN_USE
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, guard.end)
    if order.owned:
        threading.Thread(target=guard.watch, daemon=True).start()
    return guard.serve()


if __name__ == "__main__":
    sys.exit(main())
