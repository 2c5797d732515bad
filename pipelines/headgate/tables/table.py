"""One Delta table under one writer.

The fence rests on two rules (docs/exactly-once.md). A commit is made on the handle that
:meth:`Table.refresh` returned the state of, never on a fresher one: delta-rs refuses it if a
commit with the same application id has come in between. And a state with a higher epoch than
ours means that we are a zombie.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import CommitFailedError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from headgate.failpoints import failpoint
from headgate.storage.files import Storage
from headgate.tables.errors import CommitRefusedError, FencedError
from headgate.tables.log import commit_info, has_entry, read_entry
from headgate.tables.state import METADATA_KEY, State, decode

# Reader version 1, writer version 2: deltalake, DuckDB, polars, Trino and Power BI read it as it
# is. Set here so that no cluster default can turn a feature on. Only Headgate trims logs: commit
# metadata is the state, and a cleaned log would lose it.
PROPERTIES: Mapping[str, str | None] = {
    "delta.enableExpiredLogCleanup": "false",
    "delta.checkpointInterval": "100",
    "delta.checkpointPolicy": "classic",
    "delta.enableDeletionVectors": "false",
    "delta.columnMapping.mode": "none",
}
REOPEN_EVERY = 20  # commits on one handle: delta-rs slows down with the log it holds in memory
FOREIGN_COMMITS = 9  # at the log's end: somebody's OPTIMIZE is overlooked, a second writer is not


@dataclass(frozen=True)
class DataFile:
    """A Parquet file of a table: ``path`` relative to it, ``stats`` as Delta's JSON."""

    path: str
    size: int
    rows: int
    stats: str
    partition: Mapping[str, str]

    def added(self, at_millis: int) -> AddAction:
        return AddAction(self.path, self.size, dict(self.partition), at_millis, True, self.stats)

    def removed(self, at_millis: int) -> RemoveAction:
        return RemoveAction(self.path, True, at_millis, self.size, dict(self.partition))


class Table:
    """``path`` is the table's folder in ``storage``, ``name`` how a person calls it; ``app`` is
    the application id of its transactions, which never contains a path: tables may move."""

    def __init__(
        self,
        storage: Storage,
        path: str,
        *,
        pipeline: str,
        partition_by: Sequence[str] = (),
    ) -> None:
        self._place = (storage, path, pipeline)
        self.storage = storage.at(path)
        self.name = path
        self.app = f"headgate/{pipeline}/{path}"
        self.partition_by = list(partition_by)
        self.epoch = 0
        self._handle: DeltaTable | None = None
        self._commits = 0
        self._read: tuple[int, State] | None = None

    @property
    def exists(self) -> bool:
        """Whether it has a log; a crash may leave a folder without one."""
        return bool(DeltaTable.is_deltatable(self.storage.uri()))

    def create(self, schema: pa.Schema, definition: str, *, time_column: str) -> None:
        """Make the table if it is not there; its first commit stands at n = 0.

        ``time_column`` is the one that files have bounds of. The table has to say so: delta-rs
        takes a missing bound of any other column for null, and a filter on it would find nothing.
        """
        if self.exists:
            return
        try:
            DeltaTable.create(
                self.storage.uri(),
                schema=Schema.from_arrow(schema),
                mode="ignore",
                partition_by=self.partition_by,
                configuration={**PROPERTIES, "delta.dataSkippingStatsColumns": time_column},
                commit_properties=CommitProperties(
                    custom_metadata={METADATA_KEY: State(definition=definition).encode()}
                ),
            )
        except CommitFailedError:
            # Another job that starts now was faster: "ignore" looks before the commit only.
            if not self.exists:
                raise

    def reader(self) -> Table:
        """Another view of the table for another thread; it holds no epoch and must not write."""
        storage, path, pipeline = self._place
        return Table(storage, path, pipeline=pipeline, partition_by=self.partition_by)

    @property
    def handle(self) -> DeltaTable:
        if self._handle is None:
            self.refresh()
        assert self._handle is not None
        return self._handle

    def refresh(self) -> State:
        """Read the log's end and return the table's state.

        Raises FencedError if a driver with a higher epoch owns the table. Where nothing was
        committed since, this costs one look at a file: delta-rs would list the log, which grows.
        """
        if self._handle is None or self._commits >= REOPEN_EVERY:
            try:
                self._handle = DeltaTable(self.storage.uri())
            except TableNotFoundError as error:
                raise FileNotFoundError(self.storage.uri()) from error
            self._commits = 0
        elif has_entry(self.storage, self._handle.version() + 1):
            self._handle.update_incremental()
        state = self._state_at(self._handle.version())
        if self.epoch and state.epoch > self.epoch:
            raise FencedError(
                f"{self.name}: a driver with epoch {state.epoch} has taken over from this one "
                f"(epoch {self.epoch})",
                remedy="nothing to do: the other driver goes on from the last commit",
            )
        return state

    def _state_at(self, version: int) -> State:
        """The state of exactly the handle's version: what a handle's history tells may be newer."""
        if self._read is None or self._read[0] != version:
            self._read = version, self._read_state(version)
        return self._read[1]

    def _read_state(self, version: int) -> State:
        for earlier in range(version, max(version - FOREIGN_COMMITS, 0) - 1, -1):
            state = decode(commit_info(read_entry(self.storage, earlier)))
            if state is not None:
                return state
        raise CommitRefusedError(
            f"{self.name}: the last commits were not made by Headgate; it must be the only writer",
            remedy=f"look at the table's history: {self.storage.uri('_delta_log')}",
        )

    def fence(self, epoch: int) -> State:
        """Take the table: an empty commit under ``epoch``, repeated until it holds.

        From here on every older handle is refused, and whoever refreshes sees the epoch. Raises
        FencedError if somebody with a higher epoch was faster.
        """
        while True:
            self.epoch = epoch
            state = self.refresh().held("fence", epoch)
            failpoint("fence")
            try:
                self.commit(state)
            except CommitRefusedError:
                continue
            return state

    def commit(
        self, state: State, add: Sequence[DataFile] = (), remove: Sequence[DataFile] = ()
    ) -> State:
        """One commit of files, transaction and accounting, on the handle last refreshed.

        Raises CommitRefusedError if anything was committed since; the caller must end then.
        """
        handle = self.handle
        state = replace(state, epoch=self.epoch)
        if state.kind == "data":
            state = replace(state, data_commit=handle.version() + 1)
        transactions = [Transaction(self.app, state.transaction_version)]
        if state.kind == "operation":
            transactions.append(Transaction(f"{self.app}/op", state.operation))
        try:
            handle.create_write_transaction(
                [f.added(state.at // 1000) for f in add]
                + [f.removed(state.at // 1000) for f in remove],
                mode="append",
                schema=handle.schema(),
                partition_by=self.partition_by or None,
                commit_properties=CommitProperties(
                    custom_metadata={METADATA_KEY: state.encode()},
                    max_commit_retries=0,
                    app_transactions=transactions,
                ),
                post_commithook_properties=PostCommitHookProperties(cleanup_expired_logs=False),
            )
        except CommitFailedError as error:
            raise CommitRefusedError(
                f"{self.name}: the commit of batch {state.n} was refused ({error}); another "
                "driver has written to the table",
                remedy="nothing is lost: start again, or let the other driver go on",
            ) from error
        self._commits += 1
        failpoint(f"{self.name.partition('/')[0]}.committed")
        return state
