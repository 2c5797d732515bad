"""How far a table's log can be read, and what a repair does about the rest.

Two kinds of damage are mended. A Delta checkpoint repeats what the entries say, so a damaged one is
put aside. A crash of the machine may tear the newest entries, so a log may go back to the entry
before them. A log with any other damage is lost: it is put aside as a whole, and the table is
rebuilt.

A log that goes back keeps its version numbers, because savepoints and publications refer to them.
Commits that only repeat the position replace the torn entries, from the oldest on: after a crash, a
shorter end is torn.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError

from headgate.failpoints import failpoint
from headgate.history.repair.plan import Damage
from headgate.lake.storage.files import Storage
from headgate.lake.storage.layout import CONTROL
from headgate.lake.tables.checksum import digest_of
from headgate.lake.tables.damage import is_of_machine
from headgate.lake.tables.errors import CommitRefusedError, LogGapError
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.log import (
    LogFolder,
    commit_metadata,
    entry_path,
    last_checkpoint,
    list_log,
    read_commit,
)
from headgate.lake.tables.state import commit_time
from headgate.lake.tables.table import Table

HINT = "_delta_log/_last_checkpoint"


class Aside:
    """The folder to which a repair moves what is damaged: ``_headgate/damaged/<time>/``. Nothing is
    deleted."""

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


@dataclass(frozen=True)
class Log:
    """``table`` reads the log as it will be after the repair: the table itself, or a copy of its
    log without what is put aside. ``stands`` is the newest version that can be read (None: the log
    is lost), ``newest`` the highest version. ``broken`` has the damaged entries with the reason,
    ``aside`` the damaged Delta checkpoints and a wrong ``_last_checkpoint``."""

    path: str
    table: Table
    stands: int | None
    newest: int
    broken: Mapping[int, str]
    aside: Mapping[str, str]

    @property
    def is_torn(self) -> bool:
        return self.stands is not None and self.stands < self.newest

    @property
    def is_lost(self) -> bool:
        return self.stands is None

    @property
    def can_be_opened(self) -> bool:
        """Whether other commands can use the log before a repair."""
        return not (self.is_lost or self.is_torn or self.aside)

    def findings(self, is_needed: bool) -> Iterator[Damage]:
        """What is damaged. An entry is harmless if the log can be read without it, unless another
        table or publication needs its entries (``is_needed``)."""
        for version, why in self.broken.items():
            harmless = self.stands is not None and version <= self.stands and not is_needed
            yield Damage(f"{self.path}/{entry_path(version)}", why, "log", harmless)
        for place, why in self.aside.items():
            yield Damage(f"{self.path}/{place}", why, "checkpoint")
        if self.is_lost and not self.broken and not self.aside:
            yield Damage(self.path, "its log no longer lists the files that it recorded", "log")


def examine_log(storage: Storage, path: str, pipeline: str, scratch: Path) -> Log:
    """Read a table's whole log. ``scratch`` is a folder for copies of damaged logs."""
    table = Table(storage, path, pipeline=pipeline)
    folder = list_log(table.log)
    broken, aside = _broken(table.log, folder), _checkpoints(table.log, folder)
    newest = max((*folder.entries, *folder.checkpoints), default=-1)
    if _can_be_read(table) and table.version >= newest:
        # A driver may have committed meanwhile.
        aside |= _hint(table.log, folder, aside)
        return Log(path, table, table.version, table.version, broken, aside)
    stands = max((v for v in folder.entries if v not in broken), default=-1)
    good = [c for c in folder.checkpoints if _checkpoint(c) not in aside and c <= stands]
    for number, kept in enumerate([good, []] if good else [[]]):
        copy = Table(
            Storage(str(scratch / f"{path.replace('/', '-')}-{number}")), path, pipeline=pipeline
        )
        entries = (entry_path(v) for v in folder.entries if v <= stands and v not in broken)
        for place in (*entries, *map(_checkpoint, kept)):
            table.log.copy(place, copy.log)
        copy.storage = table.storage  # the data files are not copied
        if stands >= 0 and _can_be_read(copy) and copy.version == stands:
            left = {_checkpoint(c) for c in folder.checkpoints if c not in kept}
            aside |= dict.fromkeys(left - {*aside}, "it does not list the files of the entries")
            aside |= _hint(table.log, folder, aside)
            return Log(path, copy, stands, newest, broken, aside)
    return Log(path, table, None, newest, broken, aside)


def mend_log(storage: Storage, log: Log, aside: Aside, epoch: int, now: datetime) -> None:
    """Put bad checkpoints aside, and replace a torn end. Repeatable; ``storage`` is the
    pipeline's."""
    for place in log.aside:
        aside.put(f"{log.path}/{place}")
        failpoint("repair.checkpoint_aside")
    if not log.is_torn or log.stands is None:
        return
    entry = _standing_still(log, epoch, now)
    for version in range(log.stands + 1, log.newest + 1):
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


def _broken(log: Storage, folder: LogFolder) -> dict[int, str]:
    broken: dict[int, str] = {}
    if folder.oldest > 0 and not folder.is_trimmed(folder.oldest - 1):
        broken[0] = "the log's beginning is missing, and no checkpoint holds what it said"
    for version in range(folder.oldest, (folder.entries[-1] if folder.entries else -1) + 1):
        try:
            read_commit(log, version)
        except LogGapError as error:
            broken[version] = error.message.partition("damaged: ")[2]
    return broken


def _checkpoints(log: Storage, folder: LogFolder) -> dict[str, str]:
    found = {}
    for version in folder.checkpoints:
        try:
            with log.open(_checkpoint(version)) as source:
                pq.ParquetFile(source, page_checksum_verification=True).read()
        except (OSError, pa.ArrowException, ValueError) as error:
            if is_of_machine(error):
                raise
            why = (str(error).splitlines() or ["no data"])[0][:200]
            found[_checkpoint(version)] = f"cannot be read: {why}"
    return found


def _hint(log: Storage, folder: LogFolder, aside: Mapping[str, str]) -> dict[str, str]:
    """The file ``_last_checkpoint`` if it names no good checkpoint. Without it, readers search the
    folder."""
    named = last_checkpoint(log)
    good = named in folder.checkpoints and _checkpoint(named) not in aside
    return {} if good or not log.exists(HINT) else {HINT: "names no valid checkpoint"}


def _can_be_read(table: Table) -> bool:
    try:
        table.refresh()
        table.require_intact()
    except (LogGapError, CommitRefusedError, DeltaError, OSError, ValueError) as error:
        if is_of_machine(error):
            raise
        return False
    return True


def _checkpoint(version: int) -> str:
    return f"_delta_log/{version:020d}.checkpoint.parquet"


def _standing_still(log: Log, epoch: int, now: datetime) -> bytes:
    """A log entry without files that repeats the position of the table."""
    state = log.table.refresh().held("fence", epoch)
    state = replace(state, files=digest_of(live_files(log.table.handle)), footers={})
    millis = commit_time(now) // 1000
    info = {
        "timestamp": millis,
        "operation": "WRITE",
        "operationParameters": {"mode": "Append"},
        **commit_metadata(state),
    }
    txn = {"appId": log.table.app, "version": state.transaction_version, "lastUpdated": millis}
    return b"".join(json.dumps(a).encode() + b"\n" for a in ({"commitInfo": info}, {"txn": txn}))
