"""Stores the leases of a pipeline."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Protocol

from filelock import FileLock, Timeout

from headgate import exit_codes
from headgate.commands import pipeline_command
from headgate.errors import HeadgateError
from headgate.lake.control.ownership import (
    EXPIRES_AFTER,
    LAYERS,
    Owner,
    last_driver,
    lease_path,
    owner_of,
)
from headgate.lake.storage.documents import Document, read_document, write_document
from headgate.lake.storage.files import Storage
from headgate.lake.storage.layout import CONTROL, Layout
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.snapshot import tables_of

LOCKED_FOR = 30.0  # seconds: the lock is held for milliseconds, unless its process is frozen

Leases = Mapping[str, Document | None]
"""The lease of each layer; None if the layer never had one."""
LeaseChange = Callable[[Leases], Mapping[str, Document]]
"""Computes new leases from the current ones. The result contains only the leases to replace."""
RENEW_EVERY = 5.0  # seconds


class LeaseHeldError(HeadgateError, code=exit_codes.LEASE_HELD):
    """Another process holds the lease or its lock."""


class TablesInUseError(LeaseHeldError):
    """The process that holds the lease is not a driver: it does some operation, such as a
    compaction or a restore, and ends by itself."""


class LeaseStore(Protocol):
    """Leases of one pipeline. Supervision reads the same documents (``lake.control.ownership``)."""

    def read(self) -> Leases:
        """The leases as they are now."""

    def update(self, change: LeaseChange) -> None:
        """Replace leases atomically: no other process replaces any while ``change`` runs. Raises
        what ``change`` raises, and LeaseHeldError if another process does not release the lock."""


class LocalLeases:
    """Documents in a pipeline's folder. A lock file on this machine protects updates."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def read(self) -> Leases:
        return {layer: read_document(self._storage, lease_path(layer)) for layer in LAYERS}

    def update(self, change: LeaseChange) -> None:
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


def may_take(held: Document | None, now: datetime, *, take_over: bool) -> bool:
    """Whether a new owner may take the lease that ``held`` describes."""
    if held is None or held["released"] or take_over:
        return True
    return owner_of(held).is_dead() or now - datetime.fromisoformat(held["renewed"]) > EXPIRES_AFTER


def highest_table_epoch(layout: Layout, pipeline: str) -> int:
    """The highest epoch in a pipeline's tables. Lease documents can be lost; epochs in tables never
    decrease."""
    return max((table.refresh().epoch for table in tables_of(layout, pipeline)), default=0)


def highest_readable_epoch(layout: Layout, pipeline: str) -> int:
    """As ``highest_table_epoch``, without tables whose logs cannot be read: a driver does not write
    these."""
    found = [0]
    for table in tables_of(layout, pipeline):
        with suppress(LogGapError):
            found.append(table.refresh().epoch)
    return max(found)


HighestEpoch = Callable[[Layout, str], int]


def has_crashed(driver: Document | None) -> bool:
    """Whether the driver of a lease document failed or was killed; False if none ever ran."""
    return driver is not None and (not driver["released"] or bool(driver["failed"]))


class Lease:
    """Held from :meth:`take` to :meth:`release`. A separate thread renews it.

    ``operation`` names the work of an owner that is not a driver, such as a restore. ``starts``
    says that a driver follows immediately. Set ``failed`` before the release.
    """

    def __init__(
        self,
        layout: Layout,
        layers: Sequence[str],
        pipeline: str,
        operation: str | None = None,
        *,
        starts: bool = False,
        store: LeaseStore | None = None,
    ) -> None:
        self._layout = layout
        self._layers = tuple(layers)
        self._pipeline = pipeline
        self._operation, self._starts = operation, starts
        self._store = store or LocalLeases(layout.storage)
        self._before: Leases = {}
        self._restarts = 0
        self.epoch = 0
        self.failed = False
        self._lost = threading.Event()
        self._done = threading.Event()
        self._since = datetime.now(UTC)

    @property
    def is_lost(self) -> bool:
        return self._lost.is_set()

    def require_free(self, now: datetime) -> None:
        """Raises LeaseHeldError if another owner holds a layer now. Takes nothing."""
        self._require(self._store.read(), now, take_over=False)

    def take(self, *, take_over: bool = False, highest: HighestEpoch = highest_table_epoch) -> int:
        """Take the layers' leases and return the new epoch. It is higher than the epoch of every
        lease and table. Raises LeaseHeldError."""

        def taken(held: Leases) -> Mapping[str, Document]:
            now = datetime.now(UTC)
            self._require(held, now, take_over=take_over)
            epochs = (int(d["epoch"]) for d in held.values() if d)
            self.epoch = 1 + max([highest(self._layout, self._pipeline), *epochs])
            self._since = now
            self._before = {layer: last_driver(held[layer]) for layer in self._layers}
            self._restarts = max(map(_restarts, self._before.values()))
            if not take_over:
                self._restarts += any(map(has_crashed, self._before.values()))
            return self._documents(now)

        self._store.update(taken)
        threading.Thread(target=self._renew, name="lease", daemon=True).start()
        return self.epoch

    @contextmanager
    def held(
        self, *, take_over: bool = False, highest: HighestEpoch = highest_table_epoch
    ) -> Iterator[int]:
        """Hold the leases in a ``with`` block; yields the new epoch. Raises LeaseHeldError. An
        error of the block is raised even if the leases cannot be released after it, as on a full
        disk."""
        epoch = self.take(take_over=take_over, highest=highest)
        try:
            yield epoch
        except BaseException:
            with suppress(OSError, HeadgateError):
                self.release()
            raise
        self.release()

    def release(self) -> None:
        """Release the leases if this process still owns them."""
        self._done.set()

        def released(held: Leases) -> Mapping[str, Document]:
            if not self._is_ours(held):
                return {}
            return self._documents(datetime.now(UTC), released=True)

        # A frozen process may hold the store's lock. That is no problem: this process ends, and the
        # lease of a process that has ended is not valid.
        with suppress(LeaseHeldError):
            self._store.update(released)

    def _renew(self) -> None:
        while not self._lost.is_set() and not self._done.wait(RENEW_EVERY):
            # A full disk or an edited document is usually temporary. If it is not, the lease
            # expires. The fence protects the tables in both cases.
            with suppress(OSError, HeadgateError):
                self._store.update(self._renewed)

    def _renewed(self, held: Leases) -> Mapping[str, Document]:
        if not self._is_ours(held):
            self._lost.set()
            return {}
        return {} if self._done.is_set() else self._documents(datetime.now(UTC))

    def _is_ours(self, held: Leases) -> bool:
        documents = (held[layer] for layer in self._layers)
        return all(d is not None and d["epoch"] == self.epoch for d in documents)

    def _documents(self, now: datetime, *, released: bool = False) -> dict[str, Document]:
        content: Document = {
            **vars(Owner.here()),
            "epoch": self.epoch,
            "since": self._since.isoformat(),
            "renewed": now.isoformat(),
            "released": released,
            "failed": self.failed,
            "restarts": self._restarts,
        }
        if self._operation is None:
            return dict.fromkeys(self._layers, content)
        content |= {"operation": self._operation, "starts": self._starts}
        return {layer: content | {"before": self._before[layer]} for layer in self._layers}

    def _require(self, leases: Leases, now: datetime, *, take_over: bool) -> None:
        for layer in self._layers:
            held = leases[layer]
            if not may_take(held, now, take_over=take_over):
                raise self._refused(layer, held or {})

    def _refused(self, layer: str, held: Document) -> LeaseHeldError:
        process = f"process {held['pid']} on {held['host']} since {held['since']}"
        if operation := held.get("operation"):
            return TablesInUseError(
                f"{self._pipeline}: its tables are in use by {operation}, {process}",
                remedy=f"try again when it has ended; see: {pipeline_command('status')}",
            )
        is_driver = self._operation is None
        take_over = f", or {pipeline_command('start', '--take-over')}" if is_driver else ""
        return LeaseHeldError(
            f"{self._pipeline}: its {layer} job is run by {process}",
            remedy=f"{pipeline_command('stop')}{take_over}",
        )


def _restarts(driver: Document | None) -> int:
    return 0 if driver is None else int(driver["restarts"])
