"""Lists a log's folder: entries and Delta checkpoints, by version."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from headgate.lake.storage.files import Storage

_FOLDER = "_delta_log"
_NAMED = re.compile(rf"{_FOLDER}/(\d{{20}})\.(json|checkpoint\.parquet)")
_VERSIONED = re.compile(rf"{_FOLDER}/(\d{{20}})\.")


@dataclass(frozen=True)
class LogFolder:
    """Versions are in rising order. ``paths`` has the files of each version."""

    entries: tuple[int, ...]
    checkpoints: tuple[int, ...]
    paths: tuple[tuple[int, str], ...]

    @property
    def oldest(self) -> int:
        """The version of the oldest entry."""
        return self.entries[0] if self.entries else 0

    @property
    def is_whole(self) -> bool:
        """Whether the log has all entries from version 0, or from the last Delta checkpoint, to the
        newest entry."""
        base = self.checkpoints[-1] if self.checkpoints else 0
        since = [version for version in self.entries if version >= base]
        return bool(since) and since == list(range(base, since[-1] + 1))

    @property
    def readable_from(self) -> int:
        """The oldest version that can still be read, from the first entry or from a checkpoint."""
        if self.oldest == 0:
            return 0
        return min((c for c in self.checkpoints if c >= self.oldest), default=self.oldest)

    def is_trimmed(self, version: int) -> bool:
        """Whether maintenance has removed a missing entry. If so, all older entries are removed
        too, and a checkpoint has their contents. Otherwise the entry was lost."""
        return version < self.oldest and any(c >= self.oldest for c in self.checkpoints)


def log_folder(storage: Storage) -> LogFolder:
    """List the log of the table in ``storage``. The cost grows with the log."""
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
    """The version of the newest checkpoint, from ``_last_checkpoint``; -1 if there is none."""
    try:
        return int(json.loads(storage.read(f"{_FOLDER}/_last_checkpoint"))["version"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return -1  # also if the file is damaged: logs can be read without it
