"""The members of a process tree: the children, and all that they started."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path

import psutil

MARK = "HEADGATE_PROCESS_TREE"
"""In the environment of every child: the tree's folder."""
POLL_EVERY = 0.1  # seconds


def started(process: psutil.Process) -> float:
    """When a process began, in seconds since its machine did, to a second.

    Its time of day is no name for it: the system adds the start of the machine to it, in whole
    seconds and as the clock has it now, so that a corrected clock makes another process of it.
    Raises psutil.NoSuchProcess.
    """
    return process.create_time() - psutil.boot_time()


def members(folder: Path, sessions: Collection[int], since: float) -> list[psutil.Process]:
    """All but this process. A member has a session that a child leads (processes such as Airflow's
    workers overwrite their environment with their title) or, where it leads one of its own, the
    tree's mark in its environment. ``since``, in seconds since the machine's start, is when the
    oldest began."""
    return [process for process in _younger(since) if _belongs(process, str(folder), sessions)]


def end(
    tree: Callable[[], list[psutil.Process]],
    grace: float,
    among: Callable[[psutil.Process], bool] = lambda _: True,
) -> None:
    """Ask those who lead a session to end, with what they started, give all ``grace`` seconds, then
    kill them. What they start meanwhile is treated like them. Blocks until none is left."""
    asked: set[int] = set()
    deadline = time.monotonic() + grace
    while left := [process for process in tree() if among(process)]:
        late = time.monotonic() > deadline
        for process in left:
            if late or (process.pid not in asked and _leads(process)):
                with suppress(psutil.Error):
                    process.kill() if late else process.terminate()
                asked.add(process.pid)
        time.sleep(POLL_EVERY)


def _leads(process: psutil.Process) -> bool:
    """Whether nobody else of its session is there to end it. A JVM is its driver's to end, after
    the batch."""
    with suppress(ProcessLookupError):
        leader = os.getsid(process.pid)
        return leader == process.pid or not psutil.pid_exists(leader)
    return False


def _younger(since: float) -> Iterator[psutil.Process]:
    me = psutil.Process()
    # Not process_iter: it keeps processes, and their start by the clock of then.
    for pid in psutil.pids():
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            younger = started(process) >= since - 1.0
            alive = process.status() != psutil.STATUS_ZOMBIE
            if younger and alive and process.pid != me.pid and process.uids() == me.uids():
                yield process


def _belongs(process: psutil.Process, folder: str, sessions: Collection[int]) -> bool:
    with suppress(psutil.Error, OSError):
        if os.getsid(process.pid) in sessions:
            return True
        return process.environ().get(MARK) == folder
    return False
