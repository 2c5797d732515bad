"""What two versions of a table differ in: the files that were added and removed between them.

A mirror needs no more than this, whatever made the commits: batches, operations, a restore, a
rebuild. Commits that only move rows between files (maintenance, and OPTIMIZE of other tools) are
skipped: the files that they remove stay, as long as a publication may need them.
"""

from __future__ import annotations

from dataclasses import dataclass

from headgate.tables.data_file import FINAL, DataFile
from headgate.tables.errors import LogGapError
from headgate.tables.history import with_footers
from headgate.tables.live_files import live_files
from headgate.tables.log import Commit, read_commit
from headgate.tables.log_folder import log_folder
from headgate.tables.state import State
from headgate.tables.table import Table


@dataclass(frozen=True)
class NetFiles:
    """The files whose rows are new in the version ``upto``, and those whose rows are gone.
    ``removed`` is None if that is not known: then ``added`` has all rows of the version. ``state``
    is the table's at that version."""

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

    Gives the whole table if its log or a file no longer reaches back so far. Raises LogGapError.
    """
    try:
        commits, upto, state = _commits(table, after, most_rows)
    except LogGapError:
        if not log_folder(table.storage).is_trimmed(after + 1):
            raise
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


def _commits(table: Table, after: int, most_rows: int) -> tuple[list[Commit], int, State]:
    """The commits that change rows, and the version and state after the last one."""
    newest = table.version
    found: list[Commit] = []
    rows = 0
    for version in range(after + 1, newest + 1):
        commit = read_commit(table.storage, version)
        if commit is None or commit.state.kind == "maintenance":
            continue
        if commit.files or commit.removed:
            found.append(commit)
            rows += sum(file.rows for file in commit.files)
        if rows > most_rows:
            return found, version, commit.state
    return found, newest, table.state


def _removed(table: Table, path: str, is_final: bool) -> DataFile | None:
    """A file that was removed from a table; None if a vacuum has deleted it."""
    found = table.storage.stat(path)
    final = {FINAL: str(is_final).lower()}
    return DataFile(path, found.size, 0, "", final) if found else None
