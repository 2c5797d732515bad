"""Damaged files are never removed: they are put aside, under ``_headgate/damaged/<time>/``.

A truncated log keeps its version numbers. The entries from the bad one on are replaced by commits
that only repeat the position before it. No version is used twice, because savepoints and
publications refer to versions. The bad entry is replaced last; until then the damage is detected.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime

from headgate.failpoints import failpoint
from headgate.history.repair.logs import HINT, Log
from headgate.lake.storage.files import Storage
from headgate.lake.storage.layout import CONTROL
from headgate.lake.tables.checksum import digest_of
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.log import commit_metadata, entry_path
from headgate.lake.tables.log_folder import log_folder
from headgate.lake.tables.state import commit_time


class Aside:
    """The folder to which this repair moves damaged files."""

    def __init__(self, storage: Storage, now: datetime) -> None:
        self._storage = storage
        self.folder = f"{CONTROL}/damaged/{now:%Y%m%dT%H%M%S}.{now.microsecond // 1000:03d}Z"

    def put(self, path: str) -> None:
        """Move a file, if it exists."""
        if self.keep(path):
            self._storage.remove(path)

    def keep(self, path: str) -> bool:
        """Copy a file that is about to be replaced. Returns False if it does not exist."""
        if not self._storage.exists(path):
            return False
        self._storage.copy(path, self._storage.at(self.folder))
        return True


def repair_log(storage: Storage, log: Log, aside: Aside, epoch: int, now: datetime) -> None:
    """Put a log's bad checkpoints aside, and truncate it after the newest readable version.

    Repeatable; ``storage`` is the pipeline's.
    """
    for place in log.aside:
        aside.put(f"{log.path}/{place}")
        failpoint("repair.checkpoint_aside")
    if not log.is_cut or log.stands is None:
        return
    for version, path in log_folder(storage.at(log.path)).paths:
        # Delta checkpoints, and what belongs to them.
        if version > log.stands and path != entry_path(version):
            aside.put(f"{log.path}/{path}")
    aside.put(f"{log.path}/{HINT}")
    entry = _standing_still(log, epoch, now)
    for version in range(log.newest, log.stands, -1):
        path = f"{log.path}/{entry_path(version)}"
        aside.keep(path)
        storage.write(path, entry)
        failpoint("repair.entry_replaced")


def put_log_aside(storage: Storage, path: str, aside: Aside) -> None:
    """Move a table's whole log aside; the next driver creates a new one. Repeatable: the first
    entry is moved last, so that until then the table still exists."""
    stats = sorted(storage.list(f"{path}/_delta_log"), key=lambda stat: stat.path, reverse=True)
    for stat in stats:
        aside.put(stat.path)
        failpoint("repair.log_aside")


def _standing_still(log: Log, epoch: int, now: datetime) -> bytes:
    """A log entry without files that repeats the position of the table."""
    held = log.table.refresh()
    state = held.held("fence", epoch)
    state = replace(state, files=digest_of(live_files(log.table.handle)), footers={})
    millis = commit_time(now) // 1000
    actions = (
        {
            "commitInfo": {
                "timestamp": millis,
                "operation": "WRITE",
                "operationParameters": {"mode": "Append"},
                **commit_metadata(state),
            }
        },
        {
            "txn": {
                "appId": log.table.app,
                "version": state.transaction_version,
                "lastUpdated": millis,
            }
        },
    )
    return b"".join(json.dumps(action).encode() + b"\n" for action in actions)
