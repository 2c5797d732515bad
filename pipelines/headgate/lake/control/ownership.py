"""Which process owns a pipeline's layers: the contents of lease documents. Drivers and operations
write them, and supervision only reads them."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from datetime import datetime, timedelta

import psutil

from headgate.lake.storage.documents import Document
from headgate.lake.storage.layout import Layout
from headgate.machine.process_tree.members import is_the_one, started

LAYERS = ("bronze", "silver", "gold")
EXPIRES_AFTER = timedelta(seconds=30)
"""Another driver may take a lease that was not renewed for this long."""


@dataclass(frozen=True)
class Owner:
    """The process that holds a lease. ``started`` distinguishes it from other processes with its
    pid."""

    pid: int
    host: str
    started: float

    @staticmethod
    def here() -> Owner:
        return Owner(os.getpid(), socket.gethostname(), started(psutil.Process()))

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"

    @property
    def is_here(self) -> bool:
        """Whether it is, or was, a process of this machine."""
        return self.host == socket.gethostname()

    def process(self) -> psutil.Process | None:
        """The process itself; None if it has ended or runs on another host."""
        if not self.is_here:
            return None
        try:
            process = psutil.Process(self.pid)
            is_it = is_the_one(process, self.started)
            return process if is_it and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None

    def is_dead(self) -> bool:
        """Whether the owner has certainly ended. For an owner on another host this is never
        certain: it only stops renewing its lease."""
        return self.is_here and self.process() is None


def lease_path(layer: str) -> str:
    return Layout.document(f"lease-{layer}")


def owner_of(lease: Document) -> Owner:
    return Owner(lease["pid"], lease["host"], lease["started"])


def last_driver(lease: Document | None) -> Document | None:
    """The newest lease of a driver. The lease of an operation contains the driver's lease that it
    replaced."""
    if lease is None or lease.get("operation") is None:
        return lease
    found: Document | None = lease["before"]
    return found


def in_force(lease: Document, now: datetime) -> Document:
    """The lease that describes the state of a layer. For an operation that has ended, it is the
    lease of the driver before it, as if there had been no operation. The lease of an operation that
    starts a driver counts as not released, until that driver takes the lease. If the operation has
    released it, it also stops counting once its process has ended or is silent for
    ``EXPIRES_AFTER``."""
    if lease.get("operation") is None:
        return lease
    is_gone = owner_of(lease).is_dead()
    if lease["starts"]:
        is_silent = now - datetime.fromisoformat(lease["renewed"]) > EXPIRES_AFTER
        if not lease["released"] or not (is_gone or is_silent):
            return lease | {"released": False}
    elif not lease["released"] and not is_gone:
        return lease
    return last_driver(lease) or lease
