"""One entry of a Delta log, read by its name: no listing, whose cost grows with the log."""

from __future__ import annotations

import json
from typing import Any

from headgate.storage.files import Storage
from headgate.tables.errors import LogGapError

Action = dict[str, Any]


def has_entry(storage: Storage, version: int) -> bool:
    """Whether the log of the table in ``storage`` reaches ``version``."""
    return storage.exists(_path(version))


def read_entry(storage: Storage, version: int) -> tuple[Action, ...]:
    """The actions of one commit. Raises LogGapError if the entry is missing or damaged."""
    path = _path(version)
    try:
        return tuple(json.loads(line) for line in storage.read(path).splitlines() if line.strip())
    except (FileNotFoundError, ValueError) as error:
        raise LogGapError(
            f"{storage.uri(path)}: this entry of the table's log is missing or damaged ({error})",
            remedy="restore the folder from a backup; nothing was written",
        ) from error


def commit_info(actions: tuple[Action, ...]) -> Action:
    """What a commit says about itself; empty if it says nothing."""
    return next((a["commitInfo"] for a in actions if "commitInfo" in a), {})


def _path(version: int) -> str:
    return f"_delta_log/{version:020d}.json"
