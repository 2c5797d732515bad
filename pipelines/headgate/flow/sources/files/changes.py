"""Files that are not as they were recorded, and what a person is told about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headgate.commands import pipeline_command
from headgate.declaration.model import Source
from headgate.flow.sources.errors import FileChangedError
from headgate.flow.sources.excerpts import some_of
from headgate.flow.sources.files.log import LoggedFile
from headgate.lake.storage.files import Stat, Storage

_SHOWN = 3


@dataclass(frozen=True)
class FileChange:
    """``now`` is None if the file has vanished."""

    file: LoggedFile
    now: Stat | None

    @property
    def is_of_time(self) -> bool:
        """Whether only the time is another one, as after a restore from a backup."""
        return self.now is not None and self.now.size == self.file.size

    @property
    def said(self) -> str:
        """What the file is now."""
        return "vanished" if self.now is None else _as(self.now)

    def __str__(self) -> str:
        now = "" if self.now is None else "now "
        return f"{self.file.sequence} {self.file.path} ({_as(self.file)}, {now}{self.said})"


def change_of(file: LoggedFile, now: Stat | None) -> FileChange | None:
    """How a file differs from what was recorded; None if it does not."""
    same = now is not None and (now.size, now.modified) == (file.size, file.modified)
    return None if same else FileChange(file, now)


def changed_files_error(
    landing: Storage, changes: Sequence[FileChange], source: Source
) -> FileChangedError:
    """The error for all changes in the landing folder of a source."""
    return FileChangedError(_message(landing, changes), _remedy(changes, source))


def _message(landing: Storage, changes: Sequence[FileChange]) -> str:
    if len(changes) > 1:
        return (
            f"{landing.uri()}: {len(changes):,} files are not as they were recorded: "
            f"{some_of(changes, _SHOWN)}"
        )
    (only,) = changes
    file, uri = only.file, landing.uri(only.file.path)
    if only.now is None:
        return (
            f"{uri}: the file was recorded as sequence {file.sequence} and has vanished before it "
            "was read"
        )
    return (
        f"{uri}: the file was rewritten after it was recorded as sequence {file.sequence} "
        f"({_as(file)}, now {_as(only.now)})"
    )


def _remedy(changes: Sequence[FileChange], source: Source) -> str:
    """Each source numbers its own files."""
    of = () if source.is_only else ("--source", source.name)
    lines = []
    if any(each.is_of_time for each in changes):
        accept = pipeline_command("files accept", *of)
        lines.append(f"if only the times are new, as after a restore from a backup: {accept}")
    put_back = "put the old files back with their times, and give new content a new name"
    if all(each.now is None for each in changes):
        put_back = "put back what has vanished"
    if len(changes) == 1:
        skip = pipeline_command("files skip", *of, str(changes[0].file.sequence))
        return "\n".join([*lines, f"{put_back}, or accept the change: {skip}"])
    listed = pipeline_command("files list", *of, "--changed")
    skip = pipeline_command("files skip", *of, "--changed")
    return "\n".join([f"see them all: {listed}", *lines, f"{put_back}, or never read them: {skip}"])


def _as(file: LoggedFile | Stat) -> str:
    return f"{file.size:,} byte{'' if file.size == 1 else 's'} of {file.modified:%F %T.%f}"
