"""The files log: the sequence and the status of each landing file.

It is a small Delta table of events (``FileStatus``), append-only and fenced like every other table.
A file's sequence is the high part of its records' offsets, so it never changes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from operator import itemgetter
from typing import Any, Literal

import pyarrow as pa

from headgate.declaration.kinds import FILES
from headgate.lake.storage.files import Stat, Storage
from headgate.lake.tables.arrow import stage_arrow
from headgate.lake.tables.damage import read_sound
from headgate.lake.tables.history import with_footers
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.state import Counts, State
from headgate.lake.tables.table import Table
from headgate.lake.tables.table_schema import TableSchema

FILES_LOG = FILES.name
"""The definition of every files log. It is constant: sequences survive changed declarations."""

FileStatus = Literal["recorded", "set_aside", "skipped", "withdrawn"]

SCHEMA = pa.schema(
    [
        ("event", pa.int64()),
        ("sequence", pa.int64()),
        ("path", pa.string()),
        ("size", pa.int64()),
        ("modified", pa.timestamp("us", "UTC")),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
    ]
)


@dataclass(frozen=True)
class LoggedFile:
    """A landing file. ``seen`` is when its records were seen: the earlier of its time when it was
    recorded and of that moment. ``status`` recorded: it is read in order; set_aside: it could not
    be read; skipped: a person skipped it; withdrawn: a person skipped it after it was read, so
    bronze has its records. ``reason`` explains each status except recorded."""

    sequence: int
    path: str
    size: int
    modified: datetime
    seen: datetime
    status: FileStatus = "recorded"
    reason: str | None = None


_FIELDS = tuple(field.name for field in fields(LoggedFile) if field.name in SCHEMA.names)


def file_statuses(events: Iterable[Mapping[str, Any]]) -> tuple[dict[int, LoggedFile], int]:
    """The files by sequence, after some events of a log in any order, and the number of the last
    event."""
    files: dict[int, LoggedFile] = {}
    last = 0
    # Events are ordered by number and not by time: a wall clock may step back.
    for row in sorted(events, key=itemgetter("event")):
        last = row["event"]
        # Stamps depend on it, so later events of a file do not change it.
        known = files.get(row["sequence"])
        seen = known.seen if known else min(row["modified"], row["at"])
        files[row["sequence"]] = LoggedFile(**{name: row[name] for name in _FIELDS}, seen=seen)
    return files, last


class FilesLog:
    """The events of one source's log, in memory. One process appends to it. Its threads may append
    and read at the same time, but only one of them records new files."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._appending = threading.Lock()
        self._files: dict[int, LoggedFile] = {}
        self._recorded: dict[str, LoggedFile] = {}
        self._events = self._last = self._aside = 0

    @classmethod
    def of(cls, storage: Storage, pipeline: str, source: str) -> FilesLog:
        return cls(Table(storage, FILES.path(source), pipeline=pipeline))

    @property
    def shape(self) -> TableSchema:
        return TableSchema(self.table, SCHEMA, "at")

    def load(self) -> None:
        """Read all events; later events override earlier ones. Raises DamagedFileError."""
        self.table.refresh()
        rows: list[dict[str, Any]] = []
        handle = self.table.handle
        for file in with_footers(self.table, handle.version(), live_files(handle)):
            rows += read_sound(self.table.storage, file).to_pylist()
        files, self._events = file_statuses(rows)
        self._files, self._recorded, self._last, self._aside = {}, {}, 0, 0
        for known in files.values():
            self._hold(known)

    def _hold(self, file: LoggedFile) -> None:
        """The log is asked at each listing, several times a second, and may have millions of
        files: no question may read all of them."""
        before = self._files.get(file.sequence)
        self._aside += is_aside(file) - is_aside(before)
        self._files[file.sequence] = file
        self._recorded[file.path] = file
        self._last = max(self._last, file.sequence)

    @property
    def last_sequence(self) -> int:
        return self._last

    @property
    def set_aside(self) -> int:
        """The number of files that are set aside."""
        return self._aside

    @property
    def files(self) -> tuple[LoggedFile, ...]:
        return tuple(self._files[s] for s in sorted(self._files))

    @property
    def not_read(self) -> tuple[LoggedFile, ...]:
        """The files that are not read (again), in order."""
        return tuple(file for file in self.files if file.status != "recorded")

    def recorded(self) -> Mapping[str, LoggedFile]:
        """The files by path, as they were recorded last."""
        return self._recorded

    def between(self, after: int, upto: int) -> tuple[LoggedFile, ...]:
        """The files with sequences in ``(after, upto]``, in order."""
        return tuple(self._files[s] for s in range(after + 1, upto + 1))

    def get(self, sequence: int) -> LoggedFile | None:
        return self._files.get(sequence)

    def record(self, stats: Iterable[Stat], now: datetime) -> tuple[LoggedFile, ...]:
        """Give each file the next sequence, in one commit."""
        first = self.last_sequence + 1
        files = tuple(
            LoggedFile(first + i, s.path, s.size, s.modified, min(s.modified, now))
            for i, s in enumerate(stats)
        )
        self.append(files, now)
        return files

    def append(self, files: Sequence[LoggedFile], now: datetime) -> None:
        """Record files, or what has changed about recorded ones, in one commit. A file whose status
        is no longer recorded is not read (again). The total of the commit's count ``set_aside`` is
        the number of files that are set aside after it."""
        if files:
            with self._appending:
                self._append(files, now)

    def _append(self, files: Sequence[LoggedFile], now: datetime) -> None:
        state = self.table.refresh()
        changes = ((file, self._files.get(file.sequence)) for file in files)
        aside = self._aside + sum(is_aside(new) - is_aside(old) for new, old in changes)
        events = enumerate(files, start=self._events + 1)
        rows = pa.Table.from_pylist([{"event": i, **vars(f), "at": now} for i, f in events], SCHEMA)
        n = max(self.last_sequence, files[-1].sequence)
        state = state.advanced_to(n, now).counting(commit_counts(state, len(files), aside))
        staged = stage_arrow(self.table, state, rows, time_column="at")
        self.table.commit(state, add=staged)
        self._events += len(files)
        for file in files:
            self._hold(file)


def is_aside(file: LoggedFile | None) -> bool:
    return file is not None and file.status == "set_aside"


def commit_counts(state: State, events: int, aside: int) -> Counts:
    """The counts of a commit with ``events`` after ``state``. ``aside`` files are set aside then:
    the total of ``set_aside`` is their number."""
    change = aside - state.total.get("set_aside", 0)
    return {"files": events, **({"set_aside": change} if change else {})}
