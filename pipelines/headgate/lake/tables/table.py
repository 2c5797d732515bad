"""A Delta table with one writer.

The fence has two rules (docs/exactly-once.md). A commit is made on the version whose state
:meth:`Table.refresh` returned, never on a fresher one: it is refused if another commit came in
between. If the state has a higher epoch than the driver, the driver is fenced and must end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from headgate.declaration.kinds import GOLD, kind_of, transaction_id
from headgate.failpoints import failpoint
from headgate.lake.storage.files import Storage
from headgate.lake.tables.checksum import NO_FILES, digest_after, digest_of, schema_digest
from headgate.lake.tables.data_file import FINAL, DataFile
from headgate.lake.tables.engine import engine
from headgate.lake.tables.errors import CommitRefusedError, FencedError, LogGapError
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.log import commit_metadata, has_entry, last_checkpoint, list_log
from headgate.lake.tables.log_follower import LogFollower
from headgate.lake.tables.row_counts import require_stated_rows
from headgate.lake.tables.state import State

# Reader version 1, writer version 2: deltalake, DuckDB, polars, Trino and Power BI can read it. Set
# here so that no default of a cluster turns a feature on. Only Headgate may trim logs: the state is
# in the commit metadata, and a cleanup would delete it.
PROPERTIES: Mapping[str, str | None] = {
    "delta.enableExpiredLogCleanup": "false",
    "delta.checkpointInterval": "100",
    "delta.checkpointPolicy": "classic",
    "delta.enableDeletionVectors": "false",
    "delta.columnMapping.mode": "none",
}


class Table(LogFollower):
    """``path`` is the table's folder in ``storage``, ``name`` its name in messages. ``app`` is the
    application id of its transactions. It contains no path, because tables may move.

    ``log`` is the folder whose ``_delta_log`` is the table's log. The default is ``path``, so that
    every Delta reader finds it. The log of a rebuild is elsewhere until it is published
    (``history.savepoints.rebuilds``); its data files are in ``path`` from the start.
    """

    def __init__(
        self, storage: Storage, path: str, *, pipeline: str, log: str | None = None
    ) -> None:
        super().__init__(storage.at(log or path), path)
        self._place = (storage, path, pipeline, log)
        self.storage = storage.at(path)
        self.app = transaction_id(pipeline, path)
        self.partition_by = [FINAL] if kind_of(path) == GOLD else []
        self.epoch = 0
        self.gate: Gate | None = None

    @property
    def home(self) -> Storage:
        """The storage of the pipeline, in which the table has a folder."""
        return self._place[0]

    @property
    def exists(self) -> bool:
        """Whether it has a log, complete or not. A crash may leave a folder without a log."""
        return has_entry(self.log, 0) or bool(list_log(self.log).paths)

    def create(
        self, schema: pa.Schema, definition: str, *, time_column: str, generation: int = 0
    ) -> None:
        """Create the table if it does not exist. Its first commit is at batch id 0.

        ``time_column`` is the column for which files have bounds. The table's properties name it:
        otherwise delta-rs reads missing bounds of other columns as null, and filters find nothing.
        """
        if self.exists:
            return
        columns = Schema.from_arrow(schema)
        shape = schema_digest(columns.to_json(), self.partition_by)
        state = replace(
            State.empty(self.name),
            generation=generation,
            definition=definition,
            files=NO_FILES,
            shape=shape,
        )
        try:
            DeltaTable.create(
                self.log.uri(),
                schema=columns,
                mode="ignore",
                partition_by=self.partition_by,
                configuration={**PROPERTIES, "delta.dataSkippingStatsColumns": time_column},
                commit_properties=CommitProperties(custom_metadata=commit_metadata(state)),
            )
        except CommitFailedError:
            # Another job created it at the same time: "ignore" checks only before the commit.
            if not self.exists:
                raise

    def reader(self) -> Table:
        """Another handle of the table for another thread. It has no epoch and must not write."""
        storage, path, pipeline, log = self._place
        return Table(storage, path, pipeline=pipeline, log=log)

    def twin(self) -> Table:
        """As ``reader``, with the epoch of this handle. Of several handles, only one may be between
        its refresh and its commit."""
        twin = self.reader()
        twin.epoch = self.epoch
        return twin

    def with_log(self, log: str) -> Table:
        """As ``reader``, with the log in another folder."""
        storage, path, pipeline, _ = self._place
        return Table(storage, path, pipeline=pipeline, log=log)

    def refresh(self) -> State:
        """Read the end of the log and return the table's state.

        Raises FencedError if a driver with a higher epoch owns the table, LogGapError if its log
        cannot be read.
        """
        self._update()
        state = self.state
        if self.epoch and state.epoch > self.epoch:
            raise FencedError(
                f"{self.name}: a driver with epoch {state.epoch} has taken over from this one "
                f"(epoch {self.epoch})",
                remedy="nothing to do: the other driver goes on from the last commit",
            )
        return state

    def fence(self, epoch: int) -> State:
        """Fence older drivers with an empty commit under ``epoch``, repeated until it succeeds.

        From then on commits on older versions are refused, and every refresh sees the epoch. Raises
        FencedError if a driver with a higher epoch has fenced the table first.
        """
        while True:
            self.epoch = epoch
            state = replace(self.refresh().held("fence", epoch), engine=engine())
            failpoint("fence")
            try:
                self.commit(state)
            except CommitRefusedError:
                continue
            return state

    def require_intact(self) -> None:
        """Raises LogGapError if the refreshed log has other files or columns than its last commit
        recorded: an earlier entry or a checkpoint is damaged."""
        state = self.state
        if not self._is_foreign and self._live_digest() != state.files:
            raise self._damaged(
                "the files in the log differ from those that its last commit recorded"
            )
        if state.shape not in ("", self._shape()):
            raise self._damaged(
                "the columns in the log differ from those that its last commit recorded"
            )

    def _shape(self) -> str:
        partition_by = self.handle.metadata().partition_columns
        return schema_digest(self.handle.schema().to_json(), partition_by)

    def _live_digest(self) -> str:
        return digest_of(live_files(self.handle))

    def commit(
        self,
        state: State,
        add: Sequence[DataFile] = (),
        remove: Sequence[DataFile] = (),
        schema: Schema | None = None,
        moved: Sequence[DataFile] = (),
        *,
        wider: Schema | None = None,
    ) -> State:
        """Commit files, transaction and state, on the version last refreshed.

        ``schema`` is a new schema of the table; then all live files must be removed. ``wider`` is a
        schema that extends the table's (``extending.py``); then no file may change. ``moved``
        are added files whose rows were in removed ones: publications do not send these rows again.
        Raises CommitRefusedError if there was another commit since; then the caller must end.
        Raises MiscountedError if the files have other rows than the state says.
        Raises HeldError if the table's gate does not let the new rows become visible.
        """
        require_stated_rows(self.name, self.state, state, [*add, *moved], remove)
        gate = self.gate if state.kind in ("data", "operation") else None
        if gate is not None and (add or remove or gate.wants_all):
            state = gate(state, [*add, *moved], remove)
        version, handle = self.version, self._handle_of_commit(state)
        held = self._live_digest() if self._is_foreign else self.state.files
        state = replace(
            state,
            epoch=self.epoch,
            files=digest_after(held, [*add, *moved], remove),
            shape=schema_digest(changed.to_json(), self.partition_by)
            if (changed := schema or wider)
            else self.state.shape,
            footers={f.path: f.footer for f in (*add, *moved) if f.footer is not None},
        )
        # An operation on final rows leaves the open ones in the files of an earlier commit.
        has_replaced = state.kind == "operation" and any(not file.is_final for file in remove)
        if state.kind == "data" or (has_replaced and (add or moved)):
            state = replace(state, data_commit=version + 1)
        try:
            if wider is not None:
                write_wider(handle, self.app, state, wider)
            else:
                files = {"add": add, "remove": remove, "moved": moved}
                write_commit(handle, self.app, state, self.partition_by, schema, **files)
        except CommitFailedError as error:
            raise self._refused(state, error) from error
        except DeltaError as error:
            if last_checkpoint(self.log) > version:
                raise self._refused(state, error) from error
            raise
        # After entries were trimmed, a late commit could get the version of a trimmed entry.
        if last_checkpoint(self.log) > version + 1:
            raise self._refused(state, "a newer checkpoint exists")
        self._committed(handle)
        failpoint(f"{kind_of(self.name).name}.committed")
        return state

    def _handle_of_commit(self, state: State) -> DeltaTable:
        try:
            return self.handle
        except LogGapError as error:
            if last_checkpoint(self.log) > self.version:
                raise self._refused(state, error) from error
            raise

    def _refused(self, state: State, why: object) -> CommitRefusedError:
        return CommitRefusedError(
            f"{self.name}: the commit of batch {state.n} was refused ({why}); another driver has "
            "written to the table",
            remedy="nothing is lost: start again, or let the other driver go on",
        )


TableOf = Callable[[str], Table]
"""Returns the table of a path: the current one, or its rebuild."""


def write_commit(
    handle: DeltaTable,
    app: str,
    state: State,
    partition_by: Sequence[str],
    schema: Schema | None,
    *,
    add: Sequence[DataFile],
    remove: Sequence[DataFile],
    moved: Sequence[DataFile],
) -> None:
    """Add and remove files under ``state``. ``moved`` are added files whose rows were in removed
    ones. ``schema`` replaces the table's: with it, all live files are removed. Raises
    CommitFailedError or another DeltaError.
    """
    new_rows, at = state.kind != "maintenance", state.at // 1000
    # An overwrite removes all live files, and is the only way to drop a column.
    gone = () if schema else remove
    actions: list[AddAction | RemoveAction] = [
        *(f.added(at, new_rows=new_rows) for f in add),
        *(f.added(at, new_rows=False) for f in moved),
        *(f.removed(at, rows_gone=new_rows) for f in gone),
    ]
    handle.create_write_transaction(
        actions,
        mode="overwrite" if schema else "append",
        schema=schema or handle.schema(),
        partition_by=list(partition_by) or None,
        commit_properties=_properties(app, state, [*add, *moved], remove),
        post_commithook_properties=_AFTERWARDS,
    )


def write_wider(handle: DeltaTable, app: str, state: State, schema: Schema) -> None:
    """Add the fields that ``schema`` has and the table lacks (``lake.tables.extending``). No file
    changes. Raises as ``write_commit``."""
    handle.alter.add_columns(
        schema.fields,
        commit_properties=_properties(app, state),
        post_commithook_properties=_AFTERWARDS,
    )


_AFTERWARDS = PostCommitHookProperties(cleanup_expired_logs=False)


def _properties(
    app: str, state: State, add: Sequence[DataFile] = (), remove: Sequence[DataFile] = ()
) -> CommitProperties:
    transactions = [Transaction(app, state.transaction_version)]
    if state.kind == "operation":
        transactions.append(Transaction(f"{app}/op", state.operation))
    return CommitProperties(
        custom_metadata=commit_metadata(state, add, remove),
        max_commit_retries=0,
        app_transactions=transactions,
    )


class Gate(Protocol):
    @property
    def wants_all(self) -> bool:
        """Whether the gate is also called for commits without files."""

    def __call__(self, state: State, add: Sequence[DataFile], remove: Sequence[DataFile]) -> State:
        """Validate the rows that the table would have after a commit, and return the state to
        commit. Raises HeldError if readers must not see these rows."""
