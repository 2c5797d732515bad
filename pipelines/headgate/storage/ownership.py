"""Which process owns a pipeline's layers: the shape of lease documents, for those who write them
(drivers) and those who only look (supervision)."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from datetime import timedelta

import psutil

from headgate.storage.layout import Layout

LAYERS = ("bronze", "silver", "gold")
EXPIRES_AFTER = timedelta(seconds=30)
"""A lease that was not renewed for so long may be taken by another driver."""


def started(process: psutil.Process) -> float:
    """When a process began, in seconds since its machine did, to a second.

    Its time of day is no name for it: the system adds the start of the machine to it, in whole
    seconds and as the clock has it now, so that a corrected clock makes another process of it.
    Raises psutil.NoSuchProcess.
    """
    return process.create_time() - psutil.boot_time()


@dataclass(frozen=True)
class Owner:
    """The process that holds a lease; ``started`` tells it from another one with its pid."""

    pid: int
    host: str
    started: float

    @staticmethod
    def here() -> Owner:
        return Owner(os.getpid(), socket.gethostname(), started(psutil.Process()))

    def process(self) -> psutil.Process | None:
        """The process itself; None if it is gone or runs on another host."""
        if self.host != socket.gethostname():
            return None
        try:
            process = psutil.Process(self.pid)
            is_it = abs(started(process) - self.started) <= 1
            return process if is_it and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None

    def is_dead(self) -> bool:
        """Certainly gone. An owner on another host never is: only its silence tells."""
        return self.host == socket.gethostname() and self.process() is None


def lease_path(layer: str) -> str:
    return Layout.document(f"lease-{layer}")
