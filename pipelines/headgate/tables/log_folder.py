"""What lies in a log's folder: entries and Delta checkpoints, by their versions."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from headgate.storage.files import Storage

_FOLDER = "_delta_log"
_NAMED = re.compile(rf"{_FOLDER}/(\d{{20}})\.(json|checkpoint\.parquet)")
_VERSIONED = re.compile(rf"{_FOLDER}/(\d{{20}})\.")


@dataclass(frozen=True)
class LogFolder:
    """Versions, rising. ``paths`` are all files that are of some version, by it."""

    entries: tuple[int, ...]
    checkpoints: tuple[int, ...]
    paths: tuple[tuple[int, str], ...]

    @property
    def oldest(self) -> int:
        """The oldest entry that is there."""
        return self.entries[0] if self.entries else 0

    @property
    def readable_from(self) -> int:
        """The oldest version that can still be read: with all before it, or from a checkpoint."""
        if self.oldest == 0:
            return 0
        return min((c for c in self.checkpoints if c >= self.oldest), default=self.oldest)

    def is_trimmed(self, version: int) -> bool:
        """Whether maintenance has removed an entry, and not an accident: then no older one is
        there either, and a checkpoint holds what they said."""
        return version < self.oldest and any(c >= self.oldest for c in self.checkpoints)


def log_folder(storage: Storage) -> LogFolder:
    """List the log of the table in ``storage``: what that costs grows with the log."""
    found: dict[str, list[int]] = {"json": [], "checkpoint.parquet": []}
    paths = []
    for stat in storage.list(_FOLDER):
        if named := _NAMED.fullmatch(stat.path):
            found[named[2]].append(int(named[1]))
        if versioned := _VERSIONED.match(stat.path):
            paths.append((int(versioned[1]), stat.path))
    entries, checkpoints = (tuple(sorted(versions)) for versions in found.values())
    return LogFolder(entries, checkpoints, tuple(sorted(paths)))


def last_checkpoint(storage: Storage) -> int:
    """The version of the newest checkpoint, as the log notes it; -1 without one."""
    try:
        return int(json.loads(storage.read(f"{_FOLDER}/_last_checkpoint"))["version"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return -1  # also where the note is damaged: logs are read without it
