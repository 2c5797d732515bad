"""Finds the files of gold's open rows and of their states."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.commands import pipeline_command
from headgate.lake.tables.data_file import FINAL, DataFile
from headgate.lake.tables.errors import DamagedFileError
from headgate.lake.tables.live_files import partition_files
from headgate.lake.tables.log import read_commit
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.table import Table


@dataclass(frozen=True)
class OpenRows:
    """``live`` are the open rows' files that readers see. ``files`` are the files with the states.
    Both are the same unless another tool has rewritten the files."""

    live: tuple[DataFile, ...] = ()
    files: tuple[DataFile, ...] = ()


def open_rows(table: Table) -> OpenRows:
    """The open rows of a gold table as last refreshed, from the commit of their batch.

    An OPTIMIZE by another tool drops the states, because the log does not name their column. Then
    they are read from the files of that batch. Raises DamagedFileError if these files are missing,
    or if another tool has removed open rows.
    """
    live = partition_files(table.handle, FINAL, False)
    known = GoldPayload.of(table.state).open
    if known is not None and sum(file.rows for file in live) != known:
        raise _rewritten(table)
    if not live:
        return OpenRows()
    last = read_commit(table.log, table.state.data_commit)
    written = {file.path: file for file in last.files if not file.is_final} if last else {}
    if all(file.is_ours for file in live):
        return OpenRows(live, tuple(written.get(file.path, file) for file in live))
    same = sum(f.rows for f in live) == sum(f.rows for f in written.values())
    if not same or not all(map(table.storage.exists, written)):
        raise _rewritten(table)
    return OpenRows(live, tuple(written.values()))


def _rewritten(table: Table) -> DamagedFileError:
    name = table.name.replace("/", ".")
    return DamagedFileError(
        f"{table.storage.uri()}: another tool has rewritten the files of the open rows, "
        "and the states of these rows are no longer available",
        remedy="rebuild the table: " + pipeline_command("run", "--full-refresh", name),
        at=table.storage.uri(),
    )
