"""Stores the leases of a pipeline."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Protocol

from filelock import FileLock, Timeout

from headgate import exit_codes
from headgate.errors import HeadgateError
from headgate.lake.control.ownership import LAYERS, lease_path
from headgate.lake.storage.documents import Document, read_document, write_document
from headgate.lake.storage.files import Storage
from headgate.lake.storage.layout import CONTROL

LOCKED_FOR = 30.0  # seconds: the lock is held for milliseconds, unless its process is frozen

Leases = Mapping[str, Document | None]
"""The lease of each layer; None if the layer never had one."""
Change = Callable[[Leases], Mapping[str, Document]]
"""Computes new leases from the current ones. The result contains only the leases to replace."""


class LeaseHeldError(HeadgateError, code=exit_codes.LEASE_HELD):
    """Another process holds the lease or its lock."""


class TablesInUseError(LeaseHeldError):
    """The process that holds the lease is not a driver: it does some operation, such as a
    compaction or a restore, and ends by itself."""


class LeaseStore(Protocol):
    """Leases of one pipeline. Supervision reads the same documents (``storage.ownership``)."""

    def read(self) -> Leases:
        """The leases as they are now."""

    def update(self, change: Change) -> None:
        """Replace leases atomically: no other process replaces any while ``change`` runs. Raises
        what ``change`` raises, and LeaseHeldError if another process does not release the lock."""


class LocalLeases:
    """Documents in a pipeline's folder. A lock file on this machine protects updates."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def read(self) -> Leases:
        return {layer: read_document(self._storage, lease_path(layer)) for layer in LAYERS}

    def update(self, change: Change) -> None:
        self._storage.make_folder(CONTROL)
        path = self._storage.uri(f"{CONTROL}/lease.lock")
        try:
            lock = FileLock(path, timeout=LOCKED_FOR).acquire()
        except Timeout as error:
            raise LeaseHeldError(
                f"a process, probably suspended, has held {path} for {LOCKED_FOR:.0f} s",
                remedy=f"find it with: fuser -v {shlex.quote(path)}, end it, and try again",
            ) from error
        with lock:
            for layer, content in change(self.read()).items():
                write_document(self._storage, lease_path(layer), content)
