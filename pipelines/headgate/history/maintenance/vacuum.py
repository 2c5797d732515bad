"""Removes data files and log entries of a table that nothing needs any more.

The table's writer lists the files under its batch lock, then checks that it still owns the table.
If another driver had taken over and staged files, the check would find its epoch. Therefore a
listed file that is not needed is never needed again. Removal takes no lock. It is safe after a
crash, and after another process has taken over (docs/exactly-once.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from deltalake import DeltaTable

from headgate.commands import SEE_DAMAGE
from headgate.failpoints import failpoint
from headgate.history.maintenance.needs import gather_needs
from headgate.history.maintenance.report import Amount, Vacuumed
from headgate.history.maintenance.retention import KeepReason, LogTrim, trim_log
from headgate.history.maintenance.retention_context import RetentionContext
from headgate.lake.storage.files import Stat
from headgate.lake.tables.checksum import digest_of
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.log import LogFolder, list_log, read_commit
from headgate.lake.tables.table import Table

AT_ONCE = 200
"""Files that are removed in one step."""
MOST_KEPT = timedelta(days=3660)
"""The longest time for which files are kept for readers."""


@dataclass(frozen=True)
class ListedFiles:
    """The folders under a table's ``data/``, and all files in them."""

    folders: tuple[str, ...]
    files: tuple[Stat, ...]


@dataclass(frozen=True)
class VacuumPlan:
    """What is to be removed: ``paths`` are files and whole folders, ``entries`` the log versions
    below ``trimming.to``."""

    table: Table
    removed: Amount
    kept: dict[KeepReason, Amount]
    paths: tuple[str, ...]
    log: LogFolder
    trimming: LogTrim

    @property
    def entries(self) -> int:
        return sum(version < self.trimming.to for version in self.log.entries)

    @property
    def report(self) -> Vacuumed:
        oldest, why = max(self.trimming.to, self.log.oldest), self.trimming.why
        return Vacuumed(self.table.name, self.removed, self.kept, self.entries, oldest, why)


def list_files(table: Table) -> ListedFiles:
    """The caller holds the batch lock of the table's writer. Raises FencedError."""
    found = ListedFiles(
        table.storage.folders("data"), tuple(table.storage.list("data", recursive=True))
    )
    table.refresh()
    return found


def plan_vacuum(
    view: Table, listed: ListedFiles, context: RetentionContext, keep_for: timedelta, now: datetime
) -> VacuumPlan:
    """Decide what to remove of a table. ``view`` is a separate reader of it. Changes nothing.
    Files are kept for ``keep_for``, which is at most ``MOST_KEPT``.

    Raises LogGapError if a log is damaged.
    """
    # Read the rebuild before the table: a file that is published in between is in one of them.
    rebuilt = context.rebuilt(view.name)
    view.refresh()
    log = list_log(view.storage)
    gathered = gather_needs(view, log, context, now - keep_for)
    needs = replace(gathered.needs, rebuilt=rebuilt)
    unsure = [s.path for s in listed.files if needs.reason(s.path, s.modified) is None]
    needs = replace(needs, saved=gathered.saved_among(unsure))
    kept: dict[KeepReason, Amount] = {}
    removed = Amount()
    going, staying = list[str](), list[str]()
    for stat in listed.files:
        if (reason := needs.reason(stat.path, stat.modified)) is None:
            removed += Amount(1, stat.size)
            going.append(stat.path)
        else:
            kept[reason] = kept.get(reason, Amount()) + Amount(1, stat.size)
            staying.append(stat.path)
    paths = tuple(_whole_folders(listed.folders, going, staying))
    return VacuumPlan(view, removed, kept, paths, log, trim_log(log, gathered.versions))


def remove_unneeded(found: VacuumPlan) -> Iterator[None]:
    """Carry out a plan, step by step. After a crash, the next plan removes the rest.

    Raises LogGapError if the checkpoint at which the log will start is damaged.
    """
    table, trimming = found.table, found.trimming
    if trimming.checkpoint is not None:
        DeltaTable(table.storage.uri(), version=trimming.checkpoint).create_checkpoint()
        failpoint("vacuum.checkpointed")
        yield
    for number, path in enumerate(found.paths, start=1):
        failpoint("vacuum.removing")
        table.storage.remove(path)
        if number % AT_ONCE == 0:
            yield
    if not found.entries:
        return
    _require_checkpoint(table, trimming.to)
    # Remove the oldest entry first: a missing entry without older ones counts as trimmed.
    for version, path in found.log.paths:
        if version < trimming.to:
            failpoint("vacuum.trimming")
            table.storage.remove(path)


def _whole_folders(
    folders: Sequence[str], going: Sequence[str], staying: Sequence[str]
) -> Iterator[str]:
    """The folders of attempts in which no file is kept, and the single files to remove
    elsewhere."""
    held = {_folder(path) for path in staying}
    yield from (path for name in folders if (path := f"data/{name}") not in held)
    yield from (path for path in going if _folder(path) in held or path.count("/") == 1)


def _folder(path: str) -> str:
    return "/".join(path.split("/", 2)[:2])


def _require_checkpoint(table: Table, version: int) -> None:
    """Raises LogGapError if the checkpoint at which the log will start does not give the files of
    its commit. In that case, the entries before it are still needed."""
    commit = read_commit(table.storage, version)
    files = live_files(DeltaTable(table.storage.uri(), version=version))
    if commit is None or digest_of(files) != commit.state.files:
        raise LogGapError(
            f"{table.storage.uri('_delta_log')}: the checkpoint of version {version} is damaged",
            remedy=f"see what would repair it: {SEE_DAMAGE}",
        )
