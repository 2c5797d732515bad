"""The difference between two versions of a table: the files that were added and removed.

A mirror needs no more than this for commits of any kind: batches, operations, a restore, a rebuild.
Commits that only move rows between files (maintenance, and OPTIMIZE of other tools) change no row.
But a later commit may replace the files that they have written, so these files count, too.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.lake.tables.data_file import FINAL, DataFile
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.history import with_footers
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.log import Commit, read_commit
from headgate.lake.tables.log_folder import log_folder
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table


@dataclass(frozen=True)
class NetFiles:
    """The files whose rows are new in the version ``upto``, and the files whose rows were removed.
    ``removed`` is None if it is unknown: then ``added`` has all rows of the version. ``state`` is
    the table's state at that version."""

    upto: int
    state: State
    added: tuple[DataFile, ...]
    removed: tuple[DataFile, ...] | None

    @property
    def is_empty(self) -> bool:
        return not self.added and self.removed == ()


def whole(table: Table) -> NetFiles:
    """All files of the refreshed table."""
    state, version = table.state, table.version
    files = with_footers(table, version, live_files(table.handle))
    return NetFiles(version, state, files, None)


def net_files(table: Table, after: int, most_rows: int) -> NetFiles:
    """The difference between the version ``after`` and a later one of the refreshed table: the
    newest, or the first with more than ``most_rows`` new rows.

    Returns the whole table if the log no longer reaches back to ``after``, if a file is missing, if
    another tool has moved rows, or if the columns have changed, because the table's type cannot
    read the older files. Raises LogGapError.
    """
    try:
        commits, upto, state = _commits(table, after, most_rows)
    except LogGapError:
        if not log_folder(table.storage).is_trimmed(after + 1):
            raise
        return whole(table)
    if commits is None or _has_other_columns(table, after, commits):
        return whole(table)
    added: dict[str, DataFile] = {}
    removed: dict[str, bool] = {}
    for commit in commits:
        for path in commit.removed:
            if added.pop(path, None) is None:
                removed[path] = path in commit.removed_final
        for file in commit.files:
            # A restore brings files back.
            if removed.pop(file.path, None) is None:
                added[file.path] = file
    gone = [_removed(table, *each) for each in removed.items()]
    if None in gone or not all(table.storage.exists(path) for path in added):
        return whole(table)
    sound = with_footers(table, upto, added.values())
    return NetFiles(upto, state, sound, tuple(file for file in gone if file is not None))


def _commits(table: Table, after: int, most_rows: int) -> tuple[list[Commit] | None, int, State]:
    """The commits that change or move rows, and the version and state after the last one. There are
    no commits if rows are only moved. They are None if another tool has made one of them: the files
    that it has moved are unknown."""
    newest = table.version
    found: list[Commit] = []
    rows, changes, is_known = 0, False, True
    upto, state = newest, table.state
    for version in range(after + 1, newest + 1):
        commit = read_commit(table.storage, version)
        if commit is None:
            is_known = False
        elif commit.files or commit.removed:
            found.append(commit)
            rows += commit.rows
            changes = changes or commit.state.kind != "maintenance"
            if rows > most_rows and changes:
                upto, state = version, commit.state
                break
    if not changes:
        return [], upto, state
    return (found if is_known else None), upto, state


def _has_other_columns(table: Table, after: int, commits: list[Commit]) -> bool:
    """Whether files of the version ``after`` or of later ones may have other columns than the table
    has now. Only a reset changes the type of a column."""
    shape = table.state.shape
    if any(commit.state.shape != shape for commit in commits):
        return True
    if all(commit.state.kind != "reset" for commit in commits):
        return False
    try:
        before = read_commit(table.storage, after)
    except LogGapError:
        return True
    return before is not None and before.state.shape != shape


def _removed(table: Table, path: str, is_final: bool) -> DataFile | None:
    """A file that was removed from a table; None if a vacuum has deleted it."""
    found = table.storage.stat(path)
    final = {FINAL: str(is_final).lower()}
    return DataFile(path, found.size, 0, "", final) if found else None
