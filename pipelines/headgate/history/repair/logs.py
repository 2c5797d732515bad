"""How far a table's log can be read: its entries, its Delta checkpoints, the resulting files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.exceptions import DeltaError

from headgate.history.repair.findings import Damage
from headgate.lake.storage.files import Storage
from headgate.lake.tables.damage import is_of_machine
from headgate.lake.tables.errors import CommitRefusedError, LogGapError
from headgate.lake.tables.log import entry_path, read_commit
from headgate.lake.tables.log_folder import LogFolder, last_checkpoint, log_folder
from headgate.lake.tables.table import Table

HINT = "_delta_log/_last_checkpoint"


@dataclass(frozen=True)
class Log:
    """``table`` reads the log as it will be after the repair: the table itself, or a copy of its
    log that ends at ``stands``, the newest version that can be read (None if no version can be
    read). ``newest`` is the highest version of the log. ``broken`` has the damaged entries with the
    reason, ``aside`` the damaged Delta checkpoints and a wrong ``_last_checkpoint``."""

    path: str
    table: Table
    stands: int | None
    newest: int
    broken: Mapping[int, str]
    aside: Mapping[str, str]

    @property
    def is_cut(self) -> bool:
        return self.stands is not None and self.stands < self.newest

    @property
    def is_lost(self) -> bool:
        return self.stands is None

    def findings(self) -> Iterator[Damage]:
        """What is damaged. An entry is harmless if the log can be read without it."""
        for version, why in self.broken.items():
            harmless = self.stands is not None and version <= self.stands
            yield Damage(f"{self.path}/{entry_path(version)}", why, "log", harmless)
        for place, why in self.aside.items():
            yield Damage(f"{self.path}/{place}", why, "checkpoint")
        if (self.is_cut or self.is_lost) and not self.broken and not self.aside:
            yield Damage(self.path, "its log no longer lists the files that it recorded", "log")


def examine_log(storage: Storage, path: str, pipeline: str, scratch: Path) -> Log:
    """Read a table's whole log. ``scratch`` is a folder for copies of logs of which only a part can
    be read."""
    table = Table(storage, path, pipeline=pipeline)
    folder = log_folder(table.storage)
    broken = _broken(table.storage, folder)
    aside = _checkpoints(table.storage, folder)
    newest = max((*folder.entries, *folder.checkpoints), default=-1)
    if _can_be_read(table) and table.version >= newest:
        newest = table.version  # a driver may have committed meanwhile
        aside |= _hint(table.storage, folder, aside)
        return Log(path, table, newest, newest, broken, aside)
    for reach, base in sorted(_prefixes(folder, broken, aside), reverse=True):
        copy = _copied(table, folder, broken, reach, base, scratch, pipeline)
        if _can_be_read(copy):
            after = {_checkpoint(c) for c in folder.checkpoints if c > base}
            aside |= dict.fromkeys(
                after - {*aside}, "it does not list the files that the log recorded"
            )
            aside |= _hint(table.storage, folder, aside)
            return Log(path, copy, reach, newest, broken, aside)
    return Log(path, table, None, newest, broken, aside)


def _broken(storage: Storage, folder: LogFolder) -> dict[int, str]:
    broken: dict[int, str] = {}
    if folder.oldest > 0 and not folder.is_trimmed(folder.oldest - 1):
        broken[0] = "the log's beginning is missing, and no checkpoint holds what it said"
    for version in range(folder.oldest, (folder.entries[-1] if folder.entries else -1) + 1):
        try:
            read_commit(storage, version)
        except LogGapError as error:
            broken[version] = error.message.partition("damaged: ")[2]
    return broken


def _checkpoints(storage: Storage, folder: LogFolder) -> dict[str, str]:
    found = {}
    for version in folder.checkpoints:
        try:
            with storage.open(_checkpoint(version)) as source:
                pq.ParquetFile(source, page_checksum_verification=True).read()
        except (OSError, pa.ArrowException, ValueError) as error:
            if is_of_machine(error):
                raise
            why = (str(error).splitlines() or ["no data"])[0][:200]
            found[_checkpoint(version)] = f"cannot be read: {why}"
    return found


def _hint(storage: Storage, folder: LogFolder, aside: Mapping[str, str]) -> dict[str, str]:
    """The file ``_last_checkpoint`` if it names no good checkpoint. Without it, readers search the
    folder."""
    named = last_checkpoint(storage)
    good = named in folder.checkpoints and _checkpoint(named) not in aside
    return {} if good or not storage.exists(HINT) else {HINT: "names no valid checkpoint"}


def _prefixes(
    folder: LogFolder, broken: Mapping[int, str], aside: Mapping[str, str]
) -> Iterator[tuple[int, int]]:
    """The parts of the log that may be readable, as the last version and the base: from a
    checkpoint, or from the beginning (-1), up to the first bad entry."""
    good = [c for c in folder.checkpoints if _checkpoint(c) not in aside]
    there = set(folder.entries) - broken.keys()
    for base in (-1, *good):
        reach = next(v for v in count(max(base, 0)) if v not in there) - 1
        if reach >= max(base, 0):
            yield reach, base


def _copied(
    table: Table,
    folder: LogFolder,
    broken: Mapping[int, str],
    reach: int,
    base: int,
    scratch: Path,
    pipeline: str,
) -> Table:
    """A view of the table on a copy of its log that ends at ``reach``."""
    place = Storage(str(scratch / f"{table.name.replace('/', '-')}-{reach}-{base}"))
    for version in folder.entries:
        if version <= reach and version not in broken:
            table.log.copy(entry_path(version), place.at(table.name))
    for version in folder.checkpoints:
        if version <= base:
            table.log.copy(_checkpoint(version), place.at(table.name))
    copy = Table(place, table.name, pipeline=pipeline)
    copy.storage = table.storage  # the data files are not copied
    return copy


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
