"""Follows the log of a Delta table.

The newest version and its state come from the log's file names and entries. delta-rs reads the
whole log (some ten milliseconds) only when its handle is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from deltalake import DeltaTable, Schema
from deltalake.exceptions import DeltaError, TableNotFoundError

from headgate.commands import SEE_DAMAGE
from headgate.lake.storage.files import Storage
from headgate.lake.tables.errors import CommitRefusedError, LogGapError
from headgate.lake.tables.log import has_entry, last_commit, list_log
from headgate.lake.tables.state import State

REOPEN_EVERY = 20
"""A handle is opened again after this many commits on it, or if it is further behind than this many
versions: delta-rs gets slower as its log in memory grows."""
_NONE = -1


class LogFollower:
    """The log in the folder ``log``, as of the last refresh (``_update``). ``name`` is the table's
    name in messages. The first property that is read refreshes.

    Raises LogGapError if an entry is missing, FileNotFoundError if there is no log,
    CommitRefusedError if its last commits are not Headgate's. ``handle`` raises LogGapError for
    other damage to earlier entries and checkpoints.
    """

    def __init__(self, log: Storage, name: str) -> None:
        self.log = log
        self.name = name
        self._handle: DeltaTable | None = None
        self._version = _NONE
        self._commits = 0
        self._read: tuple[int, State] | None = None
        self._columns: tuple[str, Schema] | None = None
        self._foreign = False

    def _update(self) -> None:
        """Move to the newest version. If there is no newer one, this only checks whether one file
        exists. It does not list the log, which grows."""
        is_new = self._version == _NONE or self._is_trimmed_away()
        if is_new or self._commits >= REOPEN_EVERY:
            self._handle, self._commits = None, 0
        if is_new:
            self._version = self._newest()
        while has_entry(self.log, self._version + 1):
            self._version += 1

    def _committed(self, handle: DeltaTable) -> None:
        """Record that a commit on ``handle`` has created the next version."""
        self._commits += 1
        self._version = handle.version()  # the handle has advanced if columns were added

    @property
    def version(self) -> int:
        """The version as of the last refresh."""
        self._require_read()
        return self._version

    @property
    def handle(self) -> DeltaTable:
        """The handle of delta-rs, at ``version``. Raises LogGapError."""
        self._require_read()
        # After delta-rs could not load a version, its handle has none.
        at: int | None = None if self._handle is None else self._handle.version()
        if self._handle is None or at is None or self._version - at > REOPEN_EVERY:
            with self._as_gaps():
                self._handle = DeltaTable(self.log.uri(), version=self._version)
        elif at != self._version:
            with self._as_gaps():
                self._handle.update_incremental()
                if self._handle.version() != self._version:  # another writer has committed
                    self._handle.load_as_version(self._version)
        return self._handle

    @property
    def schema(self) -> Schema:
        """The columns as of the last refresh."""
        shape = self.state.shape
        if self._columns is None or self._columns[0] != shape or not shape:
            self._columns = shape, self.handle.schema()
        return self._columns[1]

    @property
    def state(self) -> State:
        """The state of ``version``. The log may have newer ones."""
        version = self.version
        if self._read is None or self._read[0] != version:
            self._read = version, self._read_state(version)
        return self._read[1]

    @property
    def _is_foreign(self) -> bool:
        """Whether other tools have committed after the commit that has the state."""
        _ = self.state  # reading the state sets the flag
        return self._foreign

    def _damaged(self, what: str) -> LogGapError:
        return LogGapError(
            f"{self.log.uri()}: {what}",
            remedy=f"see what is damaged: {SEE_DAMAGE}",
        )

    def _require_read(self) -> None:
        if self._version == _NONE:
            self._update()

    def _newest(self) -> int:
        """The newest version of a log that has not been read."""
        listed = list_log(self.log)
        if listed.is_whole:
            return listed.entries[-1]
        with self._as_gaps():  # delta-rs may still read the log, or report the damage
            self._handle = DeltaTable(self.log.uri())
            return self._handle.version()

    def _is_trimmed_away(self) -> bool:
        """Whether the log no longer has the version. Then later versions may be trimmed too, and
        the check for the next entry would not find them."""
        return not has_entry(self.log, self._version)

    def _read_state(self, version: int) -> State:
        commit = last_commit(self.log, version)
        if commit is None:
            raise CommitRefusedError(
                f"{self.name}: the last commits were not made by Headgate; it must be the only "
                "writer",
                remedy=f"look at the table's history: {self.log.uri('_delta_log')}",
            )
        if not isinstance(commit.state.payload, type(State.empty(self.name).payload)):
            raise self._damaged("its commits are those of another kind of table")
        self._foreign = commit.version < version
        return commit.state

    @contextmanager
    def _as_gaps(self) -> Iterator[None]:
        """Errors of delta-rs, which cannot read the log, as LogGapError."""
        try:
            yield
        except TableNotFoundError as error:
            if list_log(self.log).paths:
                raise self._damaged(f"the table's log cannot be read: {error}") from error
            raise FileNotFoundError(self.log.uri()) from error
        except DeltaError as error:
            why = str(error).partition(":")[2].strip().splitlines()[0][:200]
            raise self._damaged(f"the table's log cannot be read: {why}") from error
