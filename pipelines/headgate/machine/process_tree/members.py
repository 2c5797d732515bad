"""The members of a process tree: the children and their descendants."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import psutil

MARK = "HEADGATE_PROCESS_TREE"
"""The environment variable of every child that contains the folder of the tree."""
POLL_EVERY = 0.1  # seconds
_EXACT = 1.0  # accuracy in seconds of the start of a process


def started(process: psutil.Process) -> float:
    """The start of a process, in seconds since the start of its machine, accurate to a second.

    A time of day cannot identify a process: the system computes it from the boot time by the
    current clock, so it changes when the clock is corrected. Raises psutil.NoSuchProcess.
    """
    return process.create_time() - psutil.boot_time()


def is_the_one(process: psutil.Process, began: float) -> bool:
    """Whether a process started at ``began``. If not, another process has the pid now. Raises
    psutil.NoSuchProcess."""
    return abs(started(process) - began) <= _EXACT


@cache
def this_boot() -> str:
    """An id of the current boot of the machine and of the container of this process. A pid and a
    start do not identify a process of another boot."""
    known = []
    with suppress(OSError):
        known.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
    with suppress(OSError):
        known.append(str(Path("/proc/self/ns/pid").readlink()))
    with suppress(OSError):
        # A container that starts again may get the same namespace number, but its first
        # process has another start.
        known.append(Path("/proc/1/stat").read_text().rpartition(")")[2].split()[19])
    if not known:  # macOS; its boot time would change with the clock
        with suppress(psutil.Error):
            known.append(f"{psutil.Process(1).create_time():.0f}")
    return " ".join(known)


@dataclass(frozen=True)
class ProcessSessions:
    """ProcessSessions of one boot: the starts of their leaders by pid."""

    boot: str = field(default_factory=this_boot)
    began: Mapping[int, float] = field(default_factory=dict)

    def plus(self, leader: psutil.Process) -> ProcessSessions:
        """With one more session, and without those that have ended: their numbers may be used
        again."""
        living = {*_living()}
        kept = {pid: began for pid, began in self.began.items() if pid in living}
        return replace(self, began={**kept, leader.pid: started(leader)})

    def are_of_this_boot(self) -> bool:
        return self.boot == this_boot()

    def have(self, process: psutil.Process) -> bool:
        """Whether a process is in one of them. Raises ProcessLookupError or psutil.NoSuchProcess
        if it has ended."""
        leader = os.getsid(process.pid)
        began = self.began.get(leader)
        if began is None or not self.are_of_this_boot():
            return False
        with suppress(psutil.NoSuchProcess):
            return is_the_one(psutil.Process(leader), began)
        # The leader has ended. No other process gets its pid while its session lives.
        return started(process) >= began - _EXACT


def _living() -> Iterator[int]:
    """The sessions that have a process now, by their numbers."""
    for pid in psutil.pids():
        with suppress(psutil.Error, OSError):
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                yield os.getsid(pid)


def members(folder: Path, sessions: ProcessSessions, since: float) -> list[psutil.Process]:
    """The members, without this process. A member is in the session of a child (workers of Airflow
    overwrite their environment with their title), or has the tree's mark in its environment.
    ``since`` is the start of the oldest member, in seconds since the machine's start."""
    return [process for process in _younger(since) if _belongs(process, str(folder), sessions)]


def end(
    tree: Callable[[], list[psutil.Process]],
    grace: float,
    among: Callable[[psutil.Process], bool] = lambda _: True,
) -> None:
    """Terminate the leaders of sessions, wait ``grace`` seconds, then kill all remaining processes,
    also those that were started in the meantime. Blocks until none is left."""
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


def described(processes: Iterable[psutil.Process]) -> str:
    """Their names, pids and states, as "java 4711 (disk-sleep)"."""
    texts = []
    for process in processes:
        with suppress(psutil.Error):  # it has just ended
            texts.append(f"{process.name()} {process.pid} ({process.status()})")
    return ", ".join(texts)


def _leads(process: psutil.Process) -> bool:
    """Whether a process leads its session, or the leader has ended. Others are not terminated: a
    driver, for example, ends its JVM itself after the batch."""
    with suppress(ProcessLookupError):
        leader = os.getsid(process.pid)
        return leader == process.pid or not psutil.pid_exists(leader)
    return False


def _younger(since: float) -> Iterator[psutil.Process]:
    me = psutil.Process()
    # Not process_iter: it caches processes with start times of an earlier clock.
    for pid in psutil.pids():
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            younger = started(process) >= since - _EXACT
            alive = process.status() != psutil.STATUS_ZOMBIE
            if younger and alive and process.pid != me.pid and process.uids() == me.uids():
                yield process


def _belongs(process: psutil.Process, folder: str, sessions: ProcessSessions) -> bool:
    with suppress(psutil.Error, OSError):
        return sessions.have(process) or process.environ().get(MARK) == folder
    return False
