"""Writes one commit of a table, on a handle at the version of its state."""

from __future__ import annotations

from collections.abc import Sequence

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction
from deltalake.transaction import AddAction, RemoveAction

from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.log import commit_metadata
from headgate.lake.tables.state import State


def write(
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
    """Add the fields that ``schema`` has and the table lacks (``tables.extending``). No file
    changes. Raises as ``write``."""
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
