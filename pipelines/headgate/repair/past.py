"""What a table could be given back: earlier versions of its own whose files are what was written.

Versions that savepoints name are among them; where maintenance has removed files that nobody else
needs, they are the ones that are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from headgate.savepoints.resets import Target
from headgate.storage.files import Storage
from headgate.tables.checksum import digest_of
from headgate.tables.damage import damage_of
from headgate.tables.data_file import DataFile
from headgate.tables.errors import LogGapError
from headgate.tables.history import with_footers
from headgate.tables.live_files import live_files
from headgate.tables.log import Commit, read_commit
from headgate.tables.log_folder import log_folder
from headgate.tables.state import State
from headgate.tables.table import Table


@dataclass(frozen=True)
class TableVersion:
    """A version of a table, where it stood then, and the digest of the files that were live."""

    version: int
    state: State
    files: str

    @property
    def n(self) -> int:
        return self.state.n

    @property
    def target(self) -> Target:
        return Target(self.version, self.files)


@dataclass(frozen=True)
class Reached:
    """``n`` is the first batch, going back, that is not above the one asked for; None where the
    entries do not go so far: maintenance has removed them, or one is ``broken``. ``is_merged``
    says that rows of that batch and of later ones are in one file, so they cannot be told apart."""

    n: int | None
    broken: int | None = None
    is_merged: bool = False


class Past:
    """The versions of one table, newest first. ``table`` reads the log, ``data`` has the files."""

    def __init__(self, table: Table, data: Storage, start: int | None = None) -> None:
        """``start`` is the version to begin with, by default the newest."""
        self.table = table
        self._data = data
        self._start = start
        self._known: dict[str, str | None] = {}

    @cached_property
    def start(self) -> int:
        return self.table.handle.version() if self._start is None else self._start

    @cached_property
    def bad_files(self) -> dict[str, str]:
        """The files of the newest version that are not what was written, with what is wrong."""
        return self._bad(self.start, live_files(self._at(self.start)))

    def newest(
        self, accepts: Callable[[State], bool] = lambda _: True, below: int | None = None
    ) -> TableVersion | None:
        """The newest version, below a bound, that is accepted and whose every file is sound; None
        if none is."""
        pending = set(self.bad_files)
        for place, commit in enumerate(self.commits()):
            # Somebody else's commits may follow the newest of ours.
            version = commit.version if place else self.start
            in_bounds = below is None or commit.version < below
            if not pending and in_bounds and accepts(commit.state):
                found = self._moment(commit, version)
                if isinstance(found, TableVersion):
                    return found
                pending = found
            # A file cannot be live in a version before the one that added it.
            pending -= {file.path for file in commit.files}
        return None

    def _moment(self, commit: Commit, version: int) -> TableVersion | set[str]:
        """The table at a version, whose state ``commit`` says, or which of its files are bad."""
        try:
            files = live_files(self._at(version))
        except (DeltaError, OSError):
            return set()  # the log does not give it any more, but perhaps an older one
        digest = digest_of(files)
        if digest != commit.state.files and version == commit.version:
            return set()
        if bad := self._bad(version, files):
            return set(bad)
        return TableVersion(version, commit.state, digest)

    def reaches(self, version: int, n: int) -> Reached:
        """How a version's history can be read back to batch ``n``."""
        oldest = log_folder(self.table.storage).oldest
        at: int | None = version
        files: list[DataFile] = []
        while at is not None and at >= oldest:
            try:
                commit = read_commit(self.table.storage, at)
            except LogGapError:
                return Reached(None, broken=at)
            if commit is not None and commit.state.n <= n:
                return Reached(commit.state.n, is_merged=self._is_merged(version, n, files))
            if commit is not None and commit.state.kind == "data":
                files += commit.files
            at = commit.state.origin if commit and commit.state.kind == "reset" else at - 1
        return Reached(None, is_merged=self._is_merged(version, n, None))

    def _is_merged(self, version: int, n: int, files: Sequence[DataFile] | None) -> bool:
        """Whether batches behind ``n`` have to be read from merged files, and cannot be.
        ``files`` are those that the batches wrote, None where nobody knows."""
        if files is not None and all(self._data.exists(file.path) for file in files):
            return False
        return any(file.is_across(n) for file in live_files(self._at(version)))

    def commits(self, start: int | None = None) -> Iterator[Commit]:
        """The commits that led to a version. One that cannot be read is passed over, if there was
        no reset just there: before that one lies another past."""
        oldest = log_folder(self.table.storage).oldest
        at: int | None = self.start if start is None else start
        generation: int | None = None
        passed_over = False
        while at is not None and at >= oldest:
            try:
                commit = read_commit(self.table.storage, at)
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
        return DeltaTable(self.table.storage.uri(), version=version)

    def _bad(self, version: int, files: tuple[DataFile, ...]) -> dict[str, str]:
        unknown = [file for file in files if file.path not in self._known]
        for file in with_footers(self.table, version, unknown):
            self._known[file.path] = damage_of(self._data, file)
        found = ((file.path, self._known[file.path]) for file in files)
        return {path: what for path, what in found if what is not None}
