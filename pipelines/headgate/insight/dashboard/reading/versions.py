"""The newest version of a table that readers may see.

It is the newest version of the table's log, as ``headgate query`` reads it. A version of gold that
is held by its rules has no commit, and a rebuild has a log of its own, so neither is ever shown.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow import dataset as ds

from headgate.declaration.kinds import GOLD
from headgate.lake.storage.files import Stat
from headgate.lake.tables.log import entry_path
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table

FRESH = 0.2  # seconds until a log is checked again


@dataclass(frozen=True, eq=False)
class ReleasedVersion:
    """``number`` is the version of the Delta log of the table at ``address``, ``entry`` is the file
    of its entry in the log. ``state`` is that of its commit, with the batch id ``n``."""

    address: str
    number: int
    state: State
    rows: int
    dataset: ds.Dataset = field(repr=False)
    entry: Stat | None = None

    @cached_property
    def fragments(self) -> tuple[ds.Fragment, ...]:
        """One for each data file. A file of a version is never changed."""
        return tuple(self.dataset.get_fragments())

    @property
    def schema(self) -> pa.Schema:
        return self.dataset.schema

    @property
    def place(self) -> tuple[str, int]:
        """The address and the number, from which another process can open the version."""
        return (self.address, self.number)

    @property
    def key(self) -> tuple[str, int, Stat | None]:
        """Equal keys have equal rows. A table that is deleted and created again may have the same
        numbers, but other entries."""
        return (*self.place, self.entry)


def version_of(address: str, number: int) -> ReleasedVersion:
    """Open a version that is known to be visible. Its state is empty, and its count of rows is
    0."""
    handle = DeltaTable(address, version=number)
    state = State.empty(f"{GOLD.folder}/{address.rpartition('/')[2]}")
    return ReleasedVersion(address, number, state, 0, handle.to_pyarrow_dataset())


class WatchedTable:
    """A table whose newest version is requested often, by several threads. A check that finds
    nothing new looks for three files of the log, and reads none."""

    def __init__(self, table: Table, *, fresh: float = FRESH) -> None:
        self._table, self._fresh = table, fresh
        self._lock = Lock()
        self._version: ReleasedVersion | None = None
        self._at = float("-inf")

    def current(self) -> ReleasedVersion | None:
        """None if there is no table yet. Raises HeadgateError if its log is damaged."""
        with self._lock:
            if time.monotonic() - self._at >= self._fresh:
                self._version = self._newest()
                self._at = time.monotonic()
            return self._version

    def forget(self) -> None:
        """Check the log again at the next question. To be called if a file of the version is
        missing."""
        with self._lock:
            self._at = float("-inf")

    def _newest(self) -> ReleasedVersion | None:
        if self._version is not None and self._entry(self._version.number) != self._version.entry:
            # The log was replaced: what was read from the old log does not apply to the new one.
            self._table, self._version = self._table.reader(), None
        if self._version is None and not self._table.exists:
            return None
        try:
            state = self._table.refresh()
            handle = self._table.handle
        except FileNotFoundError:
            self._table = self._table.reader()
            return None
        if self._version is not None and handle.version() == self._version.number:
            return self._version
        counts = pa.table(handle.get_add_actions(flatten=True)).column("num_records")
        rows = sum(count or 0 for count in counts.to_pylist())
        address, number = self._table.storage.uri(), handle.version()
        dataset, entry = handle.to_pyarrow_dataset(), self._entry(number)
        return ReleasedVersion(address, number, state, rows, dataset, entry)

    def _entry(self, number: int) -> Stat | None:
        return self._table.log.stat(entry_path(number))
