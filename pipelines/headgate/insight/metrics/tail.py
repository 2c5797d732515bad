"""Follows the log of a table: each entry is read once."""

from __future__ import annotations

from headgate.lake.storage.files import Storage
from headgate.lake.tables.log import Commit, has_entry, newest_commit, read_commit

MOST_AT_ONCE = 200
"""The most entries that are read in one call, so that other tables do not wait long."""


class TableTail:
    """``commit`` is the newest commit that was read; None if there is no table. The table may be
    restored, trimmed or replaced meanwhile."""

    def __init__(self, storage: Storage, path: str) -> None:
        self.log = storage.at(path)
        self.path = path
        self.commit: Commit | None = None
        self._version = -1
        self.begins = 0  # how often it has begun with the newest commit

    def poll(self) -> tuple[Commit, ...]:
        """The commits since the last call, oldest first; none at the first call, which begins with
        the newest. Raises LogGapError if an entry is damaged."""
        if self.commit is None:
            self._begin()
            return ()
        found: list[Commit] = []
        upto = self._version + MOST_AT_ONCE
        while self._version < upto and has_entry(self.log, self._version + 1):
            commit = read_commit(self.log, self._version + 1)
            self._version += 1
            if commit is not None:
                self.commit = commit
                found.append(commit)
        # The log was truncated, trimmed or replaced if it no longer has the entry: begin again.
        if not found and not has_entry(self.log, self._version):
            self._begin()
        return tuple(found)

    def _begin(self) -> None:
        self.begins += 1
        self.commit = newest_commit(self.log)
        self._version = -1 if self.commit is None else self.commit.version
