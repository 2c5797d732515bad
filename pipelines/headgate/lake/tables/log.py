"""Reads a Delta log: single entries by name, and the folder as a list of entries and checkpoints.

Reading an entry by name has a constant cost. The cost of a listing grows with the log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from headgate.commands import SEE_DAMAGE
from headgate.lake.storage.files import Storage
from headgate.lake.storage.format import FORMAT, other_content, other_format
from headgate.lake.tables.checksum import checksum_of
from headgate.lake.tables.data_file import FINAL, DataFile
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.state import State

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


def list_log(storage: Storage) -> LogFolder:
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


STATE_KEY = "headgate"
CHECKSUM_KEY = "headgateChecksum"
FOREIGN_COMMITS = 9
"""The most commits of other tools, such as OPTIMIZE, that are skipped at the end of a log."""

Action = dict[str, Any]


@dataclass(frozen=True)
class Commit:
    """An entry that Headgate wrote: the state after it, the files that it added and the paths that
    it removed. A data commit processes bronze's batch ids ``(state.from_n, state.n]``. The
    ``moved`` files are those among ``files`` that have no new rows; the ``removed_final`` are those
    among ``removed`` that have final rows of gold. ``written_at`` is when the entry was written, in
    microseconds since 1970 UTC, to the millisecond; None if the entry has no timestamp. The
    checksum does not cover it."""

    version: int
    state: State
    files: tuple[DataFile, ...]
    removed: tuple[str, ...] = ()
    moved: frozenset[str] = frozenset()
    written_at: int | None = field(default=None, compare=False)
    removed_final: frozenset[str] = frozenset()

    @property
    def rows(self) -> int:
        """The rows of the added files."""
        return sum(file.rows for file in self.files)

    @property
    def news(self) -> tuple[DataFile, ...]:
        """The added files that have new rows."""
        return tuple(file for file in self.files if file.path not in self.moved)


def commit_metadata(
    state: State, added: Sequence[DataFile] = (), removed: Sequence[DataFile] = ()
) -> dict[str, Any]:
    """The metadata of a commit, including the checksum of the metadata and files."""
    content = state.encode()
    return {
        STATE_KEY: content,
        CHECKSUM_KEY: checksum_of(content, added, [f.path for f in removed]),
    }


def has_entry(storage: Storage, version: int) -> bool:
    """Whether the log of the table in ``storage`` reaches ``version``."""
    return storage.exists(entry_path(version))


def newest_commit(storage: Storage) -> Commit | None:
    """The last commit of the table in ``storage`` that Headgate wrote, without opening the table.
    Checks at most a few hundred file names; lists the log if it is trimmed and its pointer to the
    last Delta checkpoint is lost, as in a copy. None if there is no table.

    Raises LogGapError if its entry is damaged.
    """
    version = max(last_checkpoint(storage), 0)
    if not has_entry(storage, version):
        if not (entries := list_log(storage).entries):
            return None
        version = entries[-1]
    while has_entry(storage, version + 1):
        version += 1
    return last_commit(storage, version)


def last_commit(storage: Storage, version: int) -> Commit | None:
    """The last commit up to ``version`` that Headgate wrote; None if more than ``FOREIGN_COMMITS``
    of other tools follow it. Raises as ``read_commit``."""
    for earlier in range(version, max(version - FOREIGN_COMMITS, 0) - 1, -1):
        if (commit := read_commit(storage, earlier)) is not None:
            return commit
    return None


def read_commit(storage: Storage, version: int) -> Commit | None:
    """One entry of a Delta log; None if Headgate did not write it.

    Raises LogGapError if the entry is missing or is not what was written, FormatError if it is
    intact, but another version of Headgate or another package wrote it in its own way.
    """
    path = entry_path(version)
    try:
        lines = storage.read(path).splitlines()
        return _commit(storage, version, [json.loads(line) for line in lines if line.strip()])
    except FileNotFoundError as error:
        raise _damaged(storage, path, "it is missing") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(storage, path, str(error)) from error


def _commit(storage: Storage, version: int, actions: Sequence[Action]) -> Commit | None:
    info: Mapping[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
    if STATE_KEY not in info and CHECKSUM_KEY not in info and not _has_our_mark(version, actions):
        return None
    content = info[STATE_KEY]
    footers = content["footers"]
    added = tuple(_data_file(a["add"], footers) for a in actions if "add" in a)
    removes = [a["remove"] for a in actions if "remove" in a]
    removed = tuple(unquote(each["path"]) for each in removes)
    if checksum_of(content, added, removed) != info[CHECKSUM_KEY]:
        raise ValueError("its checksum does not match")
    if content["format"] != FORMAT:
        raise other_format(storage.uri(entry_path(version)), content["format"])
    added_as_new = (a["add"].get("dataChange", True) for a in actions if "add" in a)
    moved = {f.path for f, is_new in zip(added, added_as_new, strict=True) if not is_new}
    at = info.get("timestamp")
    written_at = at * 1000 if isinstance(at, int) else None
    partitions = zip(removed, (r.get("partitionValues") or {} for r in removes), strict=True)
    final = frozenset(path for path, of in partitions if of.get(FINAL) == "true")
    try:
        state = State.decode(content)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise other_content(storage.uri(entry_path(version)), error) from error
    return Commit(version, state, added, removed, frozenset(moved), written_at, final)


def _has_our_mark(version: int, actions: Sequence[Action]) -> bool:
    """Whether Headgate wrote an entry whose metadata may be damaged."""
    apps = (str(a["txn"].get("appId")) for a in actions if "txn" in a)
    return version == 0 or not actions or any(app.startswith("headgate/") for app in apps)


def _data_file(add: Action, footers: Mapping[str, int]) -> DataFile:
    path = unquote(add["path"])
    return DataFile(
        path=path,
        size=int(add["size"]),
        rows=int(json.loads(add["stats"])["numRecords"]),
        stats=add["stats"],
        partition=dict(add["partitionValues"]),
        footer=footers.get(path),
    )


def entry_path(version: int) -> str:
    return f"_delta_log/{version:020d}.json"


def _damaged(storage: Storage, path: str, why: str) -> LogGapError:
    return LogGapError(
        f"{storage.uri(path)}: this entry of the table's log is damaged: {why}",
        remedy=f"see what is damaged and what would repair it: {SEE_DAMAGE}",
    )
