"""The data files of a table's versions, and the version that bronze goes back to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from headgate.history.savepoints.resets import Target
from headgate.lake.tables.checksum import digest_of
from headgate.lake.tables.damage import damage_of, is_of_machine
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.history import batches, lineage, with_footers
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.log import Commit, read_commit
from headgate.lake.tables.log_folder import log_folder
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table


@dataclass(frozen=True)
class TableVersion:
    """A version of a table and its state. ``is_newest``: it is the last version of the log."""

    version: int
    state: State
    is_newest: bool = False

    @property
    def target(self) -> Target:
        return Target(self.version, self.state.files) if self.state.n else Target()


class VersionHistory:
    """The versions of one table."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._known: dict[str, str | None] = {}

    def bad_files(self, version: int | None = None) -> dict[str, str]:
        """The damaged live files of a version (default: the newest), with the damage. Reads every
        page once. Raises DeltaError or OSError if the version cannot be read, or the machine does
        not let it be read (``is_of_machine``)."""
        version = self.table.version if version is None else version
        files = live_files(self._at(version))
        unknown = [file for file in files if file.path not in self._known]
        for file in with_footers(self.table, version, unknown):
            self._known[file.path] = damage_of(self.table.storage, file)
        found = ((file.path, self._known[file.path]) for file in files)
        return {path: what for path, what in found if what is not None}

    def earlier(self, below: int | None = None) -> TableVersion | None:
        """The newest earlier version, below a bound, whose files are all intact; None if there is
        none."""
        pending = set(self.bad_files())
        for commit in self._commits():
            if not pending and (below is None or commit.version < below):
                bad = self._bad_at(commit)
                if not bad and bad is not None:
                    return TableVersion(commit.version, commit.state)
                pending = set(bad or ())
            # A file cannot be live in a version before the one that added it.
            pending -= {file.path for file in commit.files}
        return None

    def can_feed(self, at: TableVersion, n: int) -> bool:
        """Whether a table at batch id ``n`` can continue from a version of this one."""
        try:
            if at.is_newest:
                batches(self.table, n, at.state.n)
                return True
            return n == at.state.n or (n == 0 and all(lineage(self.table, at.version)))
        except LogGapError:
            return False

    def _bad_at(self, commit: Commit) -> dict[str, str] | None:
        """The damaged files of the version of a commit; None if it cannot be read, or if the log
        does not give the files that the commit recorded."""
        try:
            if digest_of(live_files(self._at(commit.version))) != commit.state.files:
                return None
            return self.bad_files(commit.version)
        except (DeltaError, OSError) as error:
            if is_of_machine(error):
                raise
            return None

    def _commits(self) -> Iterator[Commit]:
        """The commits in the lineage of the newest. A commit that cannot be read is skipped, unless
        there was a reset at it: the commits before it may then not be in the lineage."""
        oldest = log_folder(self.table.log).oldest
        at: int | None = self.table.version
        generation: int | None = None
        passed_over = False
        while at is not None and at >= oldest:
            try:
                commit = read_commit(self.table.log, at)
            except LogGapError:
                commit, passed_over = None, True
            if commit is None:
                at -= 1
                continue
            if passed_over and commit.state.generation != generation:
                return
            yield commit
            is_reset = commit.state.kind == "reset"
            generation = None if is_reset else commit.state.generation
            passed_over = False
            at = commit.state.origin if is_reset else at - 1

    def _at(self, version: int) -> DeltaTable:
        return DeltaTable(self.table.log.uri(), version=version)
