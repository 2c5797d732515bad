"""Records the files of a landing folder in the files log, selects the files to read, and checks
whether they can be read again.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace
from datetime import datetime

from headgate.declaration.model import Source
from headgate.errors import HeadgateError
from headgate.failpoints import failpoint
from headgate.flow.sources.deployed_source import DeployedSource
from headgate.flow.sources.errors import FileChangedError
from headgate.flow.sources.files.changes import FileChange, change_of, changed_files_error
from headgate.flow.sources.files.damage import unreadable
from headgate.flow.sources.files.declared import FilesSource
from headgate.flow.sources.files.landing import PUT_BACK, LandingAwayError, reaching
from headgate.flow.sources.files.listing import IGNORED_PREFIXES, examine
from headgate.flow.sources.files.log import FilesLog, LoggedFile
from headgate.flow.sources.loading import LoadPlan
from headgate.lake.storage.files import Stat, Storage
from headgate.lake.storage.tree import Tree, tree_of


class FilesIntake:
    """Lists the landing folder into the log, and selects the files to read. ``reads`` is what the
    source reads. ``unnamed`` are files and folders that it could not record, because their names
    are not UTF-8. Methods that list or read the folder raise LandingAwayError if it is away.

    The driver of the bronze job is the only writer.
    """

    def __init__(self, source: Source, log: FilesLog) -> None:
        self._source = source
        self.reads: FilesSource = source.reads
        self.log = log
        self.landing = Storage(self.reads.path)
        self.unnamed: tuple[str, ...] = ()
        self._settling: dict[str, Stat] = {}
        self._was_mount = False

    def list_new(self, now: datetime) -> Set[str]:
        """Record new files that have settled. Returns the paths of those that are still settling.

        Raises FileChangedError if a recorded file was rewritten, or a new file is too large.
        """
        if self._has_vanished():
            create = f"create it: mkdir -p {shlex.quote(self.reads.path)}\nor mount its disk"
            remedy = PUT_BACK if self.log.last_sequence else create
            raise LandingAwayError(f"there is no landing folder {self.reads.path}", remedy)
        tree, recorded = self._tree(), self.log.recorded()
        self._require_still_mounted(tree)
        self.unnamed = tuple(sorted(tree.unnamed))
        listing = examine(
            tree.named(recorded.__contains__),
            recorded,
            self._settling,
            now=now,
            settle=self.reads.settle,
            order=self.reads.order,
        )
        self._settling = dict(listing.settling)
        self._require_none(listing.changes)
        if listing.too_large:
            where = self.landing.uri(listing.too_large[0].path)
            raise FileChangedError(
                f"{where}: files above 64 GiB are not supported",
                remedy="split it into smaller files and remove it from the landing folder",
            )
        failpoint("files.listed")
        self.log.record(listing.ready, now)
        return self._settling.keys()

    def _has_vanished(self) -> bool:
        """A missing folder has an empty listing, as if there was no input. In a bucket, every
        folder without files is missing."""
        if not self.landing.is_local:
            return False
        with reaching(self.reads.path):
            return not self.landing.exists("")

    def _require_still_mounted(self, tree: Tree) -> None:
        """Raises LandingAwayError if the folder was the mount point of a disk, and now is an empty
        folder in another disk. Otherwise an empty folder is right: its files may have been removed
        after they were read."""
        if not self.landing.is_local:
            return
        with reaching(self.reads.path):
            is_mount = os.path.ismount(os.path.realpath(self.reads.path))
        if self._was_mount and not is_mount and not tree.files:
            raise LandingAwayError(
                f"the landing folder {self.reads.path} is empty, and its disk is not mounted any "
                "more",
                PUT_BACK,
            )
        self._was_mount = is_mount

    def _tree(self) -> Tree:
        with reaching(self.reads.path):
            return tree_of(self.landing, IGNORED_PREFIXES)

    def require_mounted(self, unread: int) -> None:
        """Raises LandingAwayError if a local folder has no file at all, although some are recorded
        and not read: so looks the mount point of a disk that is not mounted."""
        if self.landing.is_local and not self._tree().files:
            what = "is empty" if self.landing.exists("") else "is gone"
            raise LandingAwayError(
                f"the landing folder {self.reads.path} {what}, and {unread:,} of its files are "
                "recorded and not read",
                PUT_BACK,
            )

    def pending(self, after: int) -> tuple[LoggedFile, ...]:
        """The recorded files after a sequence, in order."""
        return self.log.between(after, self.log.last_sequence)

    def readable(self, after: int, upto: int) -> tuple[LoggedFile, ...]:
        """The files of a range that must be read.

        Raises FileChangedError if one of them has changed since it was recorded.
        """
        files = tuple(f for f in self.log.between(after, upto) if f.status == "recorded")
        with reaching(self.reads.path):
            changes = [change_of(file, self.landing.stat(file.path)) for file in files]
        self._require_none(filter(None, changes))
        return files

    def changes(self, after: int) -> tuple[FileChange, ...]:
        """How the folder differs from what was recorded: files that were rewritten, and files after
        a sequence that have vanished before they were read."""
        recorded, tree = self.log.recorded(), self._tree()
        there = {stat.path: stat for stat in tree.named(recorded.__contains__)}
        found = []
        for file in self.log.files:
            now = there.get(file.path)
            if now is None and file.status == "recorded" and file.sequence > after:
                now = self.landing.stat(file.path)  # a second name of another file
            elif now is None:
                continue
            found.append(change_of(file, now))
        return tuple(filter(None, found))

    def list_unnamed(self) -> tuple[str, ...]:
        """The files and folders that cannot be recorded. An object store has none."""
        return tuple(self._tree().unnamed) if self.landing.is_local else ()

    def require_unchanged(self, after: int) -> None:
        """Raises what a driver that continues after a sequence would meet: FileChangedError if
        files have changed, and LandingAwayError, for which it waits."""
        unread = sum(file.status == "recorded" for file in self.pending(after))
        if unread:
            self.require_mounted(unread)
        self._require_none(self.changes(after))

    def _require_none(self, changes: Iterable[FileChange]) -> None:
        if found := tuple(changes):
            raise changed_files_error(self.landing, found, self._source)

    def require_all_again(self, after: int) -> None:
        """Raises FileChangedError if a file after a sequence cannot be read again."""
        for file in self.log.between(after, self.log.last_sequence):
            if file.status == "withdrawn":
                raise FileChangedError(
                    f"{self.landing.uri(file.path)}: it was read as sequence {file.sequence}, and "
                    "rewritten or removed since: only bronze still has its records",
                    remedy="keep bronze as it is",
                )
        self.readable(after, self.log.last_sequence)

    def set_unreadable_aside(self, files: Sequence[LoggedFile], now: datetime) -> bool:
        """After a failed read, set unreadable files aside. Returns whether there were any."""
        damaged = unreadable(self.landing, self.reads, files)
        aside = [replace(file, status="set_aside", reason=why) for file, why in damaged.items()]
        self.log.append(aside, now)
        return bool(damaged)


def gone_files(place: DeployedSource, after: int) -> str | None:
    """A message about the files after sequence ``after`` that cannot be read again; None if all
    can."""
    log = FilesLog.of(place.storage, place.pipeline, place.source.name)
    if not log.table.exists:
        return "there is no log of the files that were read"
    try:
        log.load()
        FilesIntake(place.source, log).require_all_again(after)
    except HeadgateError as error:
        return error.message
    return None


def require_unchanged(place: DeployedSource, after: int) -> None:
    """Raises FileChangedError if files have changed, so that a driver that continues after sequence
    ``after`` would stop."""
    log = FilesLog.of(place.storage, place.pipeline, place.source.name)
    if log.table.exists:
        log.load()
        FilesIntake(place.source, log).require_unchanged(after)


def gone_of_load(place: DeployedSource, plan: LoadPlan, folder: Storage) -> str | None:
    """A message about the files of a load that cannot be read again; None if all can."""
    log = FilesLog.of(folder, place.pipeline, place.source.name)
    if not log.table.exists:
        return "there is no log of its files"
    try:
        log.load()
        reads = replace(place.source.reads, path=plan.details["folder"])
        FilesIntake(replace(place.source, reads=reads), log).readable(0, plan.ends["sequence"])
    except HeadgateError as error:
        return error.message
    return None
