"""Who may write a pipeline's tables: one driver per layer, under rising epochs.

The lease keeps a second driver from starting; what keeps a paused one from writing is the fence
(``tables.table``), for which the lease only supplies epochs. Taking is serialised by a file lock.
"""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import ClassVar

from filelock import FileLock, Timeout

from headgate.commands import pipeline_command
from headgate.errors import HeadgateError
from headgate.storage.documents import Document, read_document, write_document
from headgate.storage.layout import CONTROL, Layout
from headgate.storage.ownership import (
    EXPIRES_AFTER,
    LAYERS,
    Owner,
    last_driver,
    lease_path,
    owner_of,
)
from headgate.tables.snapshot import tables_of

RENEW_EVERY = 5.0  # seconds
LOCKED_FOR = 30.0  # seconds: the lock is held for milliseconds, unless its holder is frozen


class LeaseHeldError(HeadgateError):
    """Another driver runs this pipeline."""

    exit_code: ClassVar[int] = 6


def may_take(held: Document | None, now: datetime, *, take_over: bool) -> bool:
    """Whether a lease document leaves room for a new owner."""
    if held is None or held.get("released") or take_over:
        return True
    return owner_of(held).is_dead() or now - datetime.fromisoformat(held["renewed"]) > EXPIRES_AFTER


def highest_epoch(layout: Layout, pipeline: str) -> int:
    """The highest epoch in a pipeline's tables: lease documents may be lost, the tables' never
    fall."""
    return max((table.refresh().epoch for table in tables_of(layout, pipeline)), default=0)


HighestEpoch = Callable[[Layout, str], int]


def went_down(driver: Document | None) -> bool:
    """Whether the driver of a lease document failed or was killed; False where none ever ran."""
    return driver is not None and (not driver["released"] or bool(driver.get("failed")))


class Lease:
    """Held from :meth:`take` to :meth:`release`, renewed by a thread of its own.

    ``operation`` names what an owner does that is no driver, such as a restore; ``starts`` says
    that a driver follows at once. ``failed`` is to be set before the release.
    """

    def __init__(
        self,
        layout: Layout,
        layers: Sequence[str],
        pipeline: str,
        operation: str | None = None,
        *,
        starts: bool = False,
    ) -> None:
        self._layout = layout
        self._layers = tuple(layers)
        self._pipeline = pipeline
        self._operation, self._starts = operation, starts
        self._before: dict[str, Document | None] = {}
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
        """Raises LeaseHeldError where another owner has a layer now. Takes nothing."""
        for layer in self._layers:
            if not may_take(held := self._read(layer), now, take_over=False):
                raise self._refused(layer, held or {})

    def take(self, *, take_over: bool = False, highest: HighestEpoch = highest_epoch) -> int:
        """Take the layers' leases and return the new epoch, higher than every lease's and every
        table's. Raises LeaseHeldError."""
        try:
            mutex = self._mutex().acquire()
        except Timeout as error:
            raise self._locked(error.lock_file) from error
        with mutex:
            now = datetime.now(UTC)
            held = {layer: self._read(layer) for layer in LAYERS}
            for layer in self._layers:
                if not may_take(held[layer], now, take_over=take_over):
                    raise self._refused(layer, held[layer] or {})
            epochs = (int(d["epoch"]) for d in held.values() if d)
            self.epoch = 1 + max([highest(self._layout, self._pipeline), *epochs])
            self._since = now
            self._before = {layer: last_driver(held[layer]) for layer in self._layers}
            self._restarts = max(map(_restarts, self._before.values()))
            if not take_over:
                self._restarts += any(map(went_down, self._before.values()))
            self._write(now)
        threading.Thread(target=self._renew, name="lease", daemon=True).start()
        return self.epoch

    def release(self) -> None:
        """Give the leases back, if they are still ours."""
        self._done.set()
        # A frozen process may hold the lock; this one ends, and then its lease counts for nothing.
        with suppress(Timeout), self._mutex():
            if self._is_ours():
                self._write(datetime.now(UTC), released=True)

    def _renew(self) -> None:
        while not self._done.wait(RENEW_EVERY):
            # A full disk, or a document that somebody edits: in weeks it happens, and passes. If
            # it does not, the lease is seen to expire; the fence holds either way.
            with suppress(OSError, HeadgateError), self._mutex():
                if not self._is_ours():
                    self._lost.set()
                    return
                if not self._done.is_set():
                    self._write(datetime.now(UTC))

    def _is_ours(self) -> bool:
        documents = (self._read(layer) for layer in self._layers)
        return all(d is not None and d["epoch"] == self.epoch for d in documents)

    def _mutex(self) -> FileLock:
        self._layout.storage.make_folder(CONTROL)
        return FileLock(self._layout.storage.uri(f"{CONTROL}/lease.lock"), timeout=LOCKED_FOR)

    def _read(self, layer: str) -> Document | None:
        return read_document(self._layout.storage, lease_path(layer))

    def _write(self, now: datetime, *, released: bool = False) -> None:
        owner = Owner.here()
        for layer in self._layers:
            content: Document = {
                **vars(owner),
                "epoch": self.epoch,
                "since": self._since.isoformat(),
                "renewed": now.isoformat(),
                "released": released,
                "failed": self.failed,
                "restarts": self._restarts,
            }
            if self._operation is not None:
                content |= {"operation": self._operation, "starts": self._starts}
                content["before"] = self._before[layer]
            write_document(self._layout.storage, lease_path(layer), content)

    def _locked(self, path: str) -> LeaseHeldError:
        return LeaseHeldError(
            f"{self._pipeline}: a process, frozen it seems, has held {path} for {LOCKED_FOR:.0f} s",
            remedy=f"find it with: fuser -v {shlex.quote(path)}, end it, and try again",
        )

    def _refused(self, layer: str, held: Document) -> LeaseHeldError:
        return LeaseHeldError(
            f"{self._pipeline}: its {layer} job is run by process {held['pid']} on "
            f"{held['host']} since {held['since']}",
            remedy=f"{pipeline_command('stop')}, or {pipeline_command('start', '--take-over')}",
        )


def _restarts(driver: Document | None) -> int:
    return 0 if driver is None else int(driver.get("restarts", 0))
