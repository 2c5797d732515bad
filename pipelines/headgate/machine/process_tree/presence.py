"""Finds and ends the tree of a folder, also from another process than its owner. Locks on files,
which end with the process that has them, say whether it lives."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import psutil
from filelock import FileLock, Timeout

from headgate import exit_codes
from headgate.errors import HeadgateError
from headgate.machine.process_tree import members
from headgate.machine.process_tree.members import POLL_EVERY, ProcessSessions


def is_locked(path: Path) -> bool:
    """Whether a process has the lock of a file. Does not wait."""
    try:
        lock = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


_LOCK = "lock"
_DOCUMENT = "running.json"
_SLACK = 15.0  # seconds beyond the longest time that a guard needs
_ANNOUNCES_WITHIN = 5.0  # seconds from taking the lock to writing the document


class ProcessTreeError(HeadgateError, code=exit_codes.NOT_ALIVE):
    """A tree does not start or end, or its guard is unknown."""


@dataclass(frozen=True)
class Presence:
    """A running tree. ``children`` are pids by name, ``sessions`` those of all children so
    far. ``began`` is the start of the guard, ``since`` that of the oldest member, in seconds since
    the machine's start. ``within`` is the longest time in seconds that an end takes. ``told`` is
    ``tell`` of the order. ``asked``: the tree ends because somebody has asked for its end."""

    guard: int
    began: float
    since: float
    children: Mapping[str, int]
    sessions: ProcessSessions
    within: float
    told: Mapping[str, Any]
    asked: bool = False

    def members(self, folder: Path) -> list[psutil.Process]:
        return members.members(folder.absolute(), self.sessions, self.since)


def running(folder: Path) -> Presence | None:
    """The tree that runs in ``folder``; None if there is none. Raises ProcessTreeError if the lock
    is held and no document names the guard."""
    deadline = time.monotonic() + _ANNOUNCES_WITHIN
    while is_guarded(folder):
        if (found := read(folder)) is not None:
            return found
        if time.monotonic() > deadline:
            raise ProcessTreeError(
                f"{folder} is locked by a process that {folder / _DOCUMENT} does not name",
                f"find its pid, and kill it: fuser -v {shlex.quote(str(folder / _LOCK))}",
            )
        time.sleep(POLL_EVERY)
    return None


def end(folder: Path) -> Presence | None:
    """End the tree in ``folder``, or what a killed guard has left, and wait; None if there was
    nothing. Raises ProcessTreeError if it does not end, or if it runs elsewhere."""
    found = running(folder)
    if found is None:
        if read(folder) is None:
            return None
        with lock(folder):
            return clear(folder)
    if not found.sessions.are_of_this_boot():
        raise ProcessTreeError(
            f"the processes of {folder} run in another container or on another machine",
            "type this command there",
        )
    with suppress(psutil.NoSuchProcess):
        guard = psutil.Process(found.guard)
        if members.is_the_one(guard, found.began):
            guard.terminate()
    deadline = time.monotonic() + found.within + _SLACK
    while is_guarded(folder):
        if time.monotonic() > deadline:
            raise unending(folder, found.guard)
        time.sleep(POLL_EVERY)
    return found


def ends_on_request(environment: Mapping[str, str]) -> bool:
    """Whether the process with this environment belongs to a tree that ends because somebody has
    asked for its end. The end of an owner that was killed is no request."""
    folder = environment.get(members.MARK)
    found = None if folder is None else read(Path(folder))
    return found is not None and found.asked


def unending(folder: Path, guard: int) -> ProcessTreeError:
    """The error of a guard that does not end, with the members that are left."""
    left = None if (found := read(folder)) is None else members.described(found.members(folder))
    return ProcessTreeError(
        f"process {guard}, the guard of {folder}, does not end; its processes: {left or 'none'}",
        f"kill it, then type this command again to end what is left: kill -9 {guard}",
    )


def clear(folder: Path) -> Presence | None:
    """End what a killed guard has left. The caller must hold the lock."""
    left = read(folder)
    if left is not None:
        announce(folder, replace(left, asked=True))
        members.end(lambda: left.members(folder), left.within)
        (folder / _DOCUMENT).unlink(missing_ok=True)
    return left


def clear_unless_locked(folder: Path) -> None:
    """End what a killed guard has left, unless another process has the lock: the next guard, or one
    that ends the tree. That process does the same."""
    with suppress(Timeout), lock(folder):
        clear(folder)


def lock(folder: Path) -> FileLock:
    """Acquiring it raises Timeout if another process holds it for more than a second."""
    return FileLock(folder / _LOCK, timeout=1.0, mode=0o600)


def is_guarded(folder: Path) -> bool:
    """Whether a guard has the lock of a folder."""
    return is_locked(folder / _LOCK)


def read(folder: Path) -> Presence | None:
    """The document; None if it is missing, of another version, or damaged by a power failure."""
    try:
        found = json.loads((folder / _DOCUMENT).read_text(encoding="utf-8"))
        return msgspec.convert(found, Presence, strict=False)  # not strict: JSON's keys are text
    except (FileNotFoundError, ValueError):
        return None


def announce(folder: Path, presence: Presence) -> None:
    write(folder / _DOCUMENT, json.dumps(asdict(presence)) + "\n")


def write(path: Path, text: str) -> None:
    """Write a file atomically, also if the machine fails. It is readable by this user only: it may
    hold passwords."""
    draft = path.with_name(f"{path.name}.tmp")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
