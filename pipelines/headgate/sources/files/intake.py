"""Records the files of a landing folder in the files log, and selects the files to read."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import replace
from datetime import datetime

from headgate.commands import pipeline_command
from headgate.failpoints import failpoint
from headgate.sources.errors import FileChangedError
from headgate.sources.files.damage import unreadable
from headgate.sources.files.declared import FilesSource
from headgate.sources.files.listing import IGNORED_PREFIXES, examine
from headgate.sources.files.log import FilesLog, LoggedFile
from headgate.storage.files import Stat, Storage
from headgate.storage.tree import tree_of


class FilesIntake:
    """Lists the landing folder into the log, and selects the files to read. ``is_missing`` is
    whether the last listing found that a local folder of recorded files is gone. ``unnamed`` are
    files and folders that it could not record, because their names are not UTF-8.

    The driver of the bronze job is the only writer.
    """

    def __init__(self, source: FilesSource, log: FilesLog) -> None:
        self.source = source
        self.log = log
        self.landing = Storage(self.source.path)
        self.is_missing, self.unnamed = False, tuple[str, ...]()
        self._settling: dict[str, Stat] = {}

    def list_new(self, now: datetime) -> Set[str]:
        """Record new files that have settled. Returns the paths of those that are still settling.

        Raises FileChangedError if a recorded file was rewritten, or a new file is too large.
        """
        self.is_missing = self._has_vanished()
        tree, recorded = tree_of(self.landing, IGNORED_PREFIXES), self.log.recorded()
        self.unnamed = tuple(sorted(tree.unnamed))
        listing = examine(
            tree.named(recorded.__contains__),
            recorded,
            self._settling,
            now=now,
            settle=self.source.settle,
            order=self.source.order,
        )
        self._settling = dict(listing.settling)
        if changed := (*listing.rewritten, *listing.too_large):
            raise self._changed(changed[0])
        failpoint("files.listed")
        self.log.record(listing.ready, now)
        return self._settling.keys()

    def _has_vanished(self) -> bool:
        """A missing folder has an empty listing, as if there was no input. In a bucket, every
        folder without files is missing."""
        recorded = self.log.last_sequence > 0
        return recorded and self.landing.is_local and not self.landing.exists("")

    def _changed(self, stat: Stat) -> FileChangedError:
        logged = next((f for f in self.log.files if f.path == stat.path), None)
        if logged is None:
            return FileChangedError(
                f"{self.landing.uri(stat.path)}: files above 64 GiB are not supported",
                remedy="split it into smaller files and remove it from the landing folder",
            )
        return FileChangedError(
            f"{self.landing.uri(stat.path)}: the file was rewritten after it was recorded as "
            f"sequence {logged.sequence} ({logged.size} bytes of {logged.modified:%F %T}, now "
            f"{stat.size} bytes of {stat.modified:%F %T})",
            remedy="give new content a new name and put the old file back with its time, or accept "
            "the change: " + pipeline_command("files skip", str(logged.sequence)),
        )

    def pending(self, after: int) -> tuple[LoggedFile, ...]:
        """The recorded files after a sequence, in order."""
        return self.log.between(after, self.log.last_sequence)

    def readable(self, after: int, upto: int) -> tuple[LoggedFile, ...]:
        """The files of a range that must be read.

        Raises FileChangedError if one of them has changed since it was recorded.
        """
        files = tuple(f for f in self.log.between(after, upto) if f.status == "recorded")
        for file in files:
            stat = self.landing.stat(file.path)
            if stat is None:
                raise FileChangedError(
                    f"{self.landing.uri(file.path)}: the file was recorded as sequence "
                    f"{file.sequence} and has vanished before it was read",
                    remedy="put it back, or accept the loss: "
                    + pipeline_command("files skip", str(file.sequence)),
                )
            if (stat.size, stat.modified) != (file.size, file.modified):
                raise self._changed(stat)
        return files

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
        damaged = unreadable(self.landing, self.source, files)
        aside = [replace(file, status="set_aside", reason=why) for file, why in damaged.items()]
        self.log.append(aside, now)
        return bool(damaged)
