"""Finds the data files of a table as of an earlier batch."""

from __future__ import annotations

from collections.abc import Callable

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from headgate.commands import pipeline_command
from headgate.declaration.kinds import GOLD, LATE, kind_of, name_of
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.history import commit_at
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.table import Table

Find = Callable[[DeltaTable], tuple[DataFile, ...]]


def files_at(table: Table, n: int, find: Find = live_files) -> tuple[DataFile, ...]:
    """The data files of a table as it was when it had processed batch ``n``. ``find`` returns the
    files of a version that are wanted.

    Raises LogGapError if the log no longer has this batch, and if another tool has rewritten the
    files and has removed those of this batch.
    """
    state, live = table.refresh(), find(table.handle)
    if state.n <= n:
        return live
    # Prefer the live files: the log of a table that is ahead may not reach back so far.
    if all(file.is_ours and not file.is_across(n) for file in live):
        return tuple(file for file in live if file.n <= n)
    is_rewritten = not all(file.is_ours for file in live)
    try:
        files = find(DeltaTable(table.log.uri(), version=commit_at(table, n).version))
    except (LogGapError, DeltaError) as error:
        if is_rewritten:
            raise _rewritten(table, n) from error
        raise
    if is_rewritten and not all(table.storage.exists(file.path) for file in files):
        raise _rewritten(table, n)
    return files


def _rewritten(table: Table, n: int) -> LogGapError:
    layer, name = kind_of(table.name), name_of(table.name)
    rebuilt = (GOLD if layer == LATE else layer).path(name).replace("/", ".")
    return LogGapError(
        f"{table.name}: another tool has rewritten its files, and its rows of the batches up to "
        f"{n:,} are no longer known",
        remedy="rebuild the table: " + pipeline_command("run", "--full-refresh", rebuilt),
    )
