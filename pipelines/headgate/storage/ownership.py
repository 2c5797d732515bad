"""Which process owns a pipeline's layers: the shape of lease documents, for those who write them
(drivers) and those who only look (supervision)."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from datetime import datetime, timedelta

import psutil

from headgate.process_tree.members import is_the_one, started
from headgate.storage.documents import Document
from headgate.storage.layout import Layout

LAYERS = ("bronze", "silver", "gold")
EXPIRES_AFTER = timedelta(seconds=30)
"""A lease that was not renewed for so long may be taken by another driver."""


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
            is_it = is_the_one(process, self.started)
            return process if is_it and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None

    def is_dead(self) -> bool:
        """Certainly gone. An owner on another host never is: only its silence tells."""
        return self.host == socket.gethostname() and self.process() is None


def lease_path(layer: str) -> str:
    return Layout.document(f"lease-{layer}")


def owner_of(lease: Document) -> Owner:
    return Owner(lease["pid"], lease["host"], lease["started"])


def last_driver(lease: Document | None) -> Document | None:
    """The newest lease of a driver: an operation keeps the one that it found."""
    if lease is None or lease.get("operation") is None:
        return lease
    found: Document | None = lease["before"]
    return found


def in_force(lease: Document, now: datetime) -> Document:
    """The lease that tells how a layer is: of an operation that is over, the driver's before it, as
    if nothing had happened. An operation that starts a driver stays in force, unreleased, until
    that driver takes the lease, or the process that was to start it is gone."""
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
