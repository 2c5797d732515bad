"""Removing what nothing needs any more of a table: data files, then entries of its log.

Whoever writes the table lists its files in its turn and looks then whether it still owns it: had
another driver taken over and begun to stage, the look would have shown its epoch. So what is listed
and not needed can never be needed again. Removing it waits for nobody, a crash does no harm, nor
does a process that goes on with it after another one has taken over (docs/exactly-once.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from deltalake import DeltaTable

from headgate.commands import SEE_DAMAGE
from headgate.failpoints import failpoint
from headgate.maintenance.needs import gather
from headgate.maintenance.report import Amount, Vacuumed
from headgate.maintenance.retention import Reason, Trim, trim
from headgate.maintenance.retention_context import Surroundings
from headgate.storage.files import Stat
from headgate.tables.checksum import digest_of
from headgate.tables.errors import LogGapError
from headgate.tables.live_files import live_files
from headgate.tables.log import read_commit
from headgate.tables.log_folder import LogFolder, log_folder
from headgate.tables.table import Table

AT_ONCE = 200
"""Files that are removed in one step."""


@dataclass(frozen=True)
class Listing:
    """What lay under a table's ``data/``: its folders and all files in them."""

    folders: tuple[str, ...]
    files: tuple[Stat, ...]


@dataclass(frozen=True)
class Plan:
    """What is to go: ``paths`` are files and folders with all they hold, ``entries`` versions of
    the log below ``cut.to``."""

    table: Table
    removed: Amount
    kept: dict[Reason, Amount]
    paths: tuple[str, ...]
    log: LogFolder
    cut: Trim

    @property
    def entries(self) -> int:
        return sum(version < self.cut.to for version in self.log.entries)

    @property
    def report(self) -> Vacuumed:
        oldest, why = max(self.cut.to, self.log.oldest), self.cut.why
        return Vacuumed(self.table.name, self.removed, self.kept, self.entries, oldest, why)


def list_files(table: Table) -> Listing:
    """To be called in the turn of whoever writes the table. Raises FencedError."""
    found = Listing(
        table.storage.folders("data"), tuple(table.storage.list("data", recursive=True))
    )
    table.refresh()
    return found


def plan(
    view: Table, listed: Listing, around: Surroundings, keep_for: timedelta, now: datetime
) -> Plan:
    """What would go of a table, of which ``view`` is a reading of its own. Only reads.

    Raises LogGapError where a log is damaged.
    """
    # Before the table: files that are published in between are then in one of the two.
    rebuilt = around.rebuilt(view.name)
    view.refresh()
    log = log_folder(view.storage)
    gathered = gather(view, log, around, now - keep_for)
    needs = replace(gathered.needs, rebuilt=rebuilt)
    unsure = [s.path for s in listed.files if needs.reason(s.path, s.modified) is None]
    needs = replace(needs, saved=gathered.saved_among(unsure))
    kept: dict[Reason, Amount] = {}
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
    return Plan(view, removed, kept, paths, log, trim(log, gathered.versions))


def remove(found: Plan) -> Iterator[None]:
    """Carry a plan out, step by step. Repeatable: where one ended, the next plan goes on.

    Raises LogGapError if the checkpoint is damaged that the log is to begin with.
    """
    table, cut = found.table, found.cut
    if cut.checkpoint is not None:
        DeltaTable(table.storage.uri(), version=cut.checkpoint).create_checkpoint()
        failpoint("vacuum.checkpointed")
        yield
    for number, path in enumerate(found.paths, start=1):
        failpoint("vacuum.removing")
        table.storage.remove(path)
        if number % AT_ONCE == 0:
            yield
    if not found.entries:
        return
    _require_checkpoint(table, cut.to)
    # The oldest first: whoever misses an entry can tell by those before it that it was trimmed.
    for version, path in found.log.paths:
        if version < cut.to:
            failpoint("vacuum.trimming")
            table.storage.remove(path)


def _whole_folders(
    folders: Sequence[str], going: Sequence[str], staying: Sequence[str]
) -> Iterator[str]:
    """Folders of attempts of which nothing stays, and the single files of others."""
    held = {_folder(path) for path in staying}
    yield from (path for name in folders if (path := f"data/{name}") not in held)
    yield from (path for path in going if _folder(path) in held or path.count("/") == 1)


def _folder(path: str) -> str:
    return "/".join(path.split("/", 2)[:2])


def _require_checkpoint(table: Table, version: int) -> None:
    """Raises LogGapError if the checkpoint that the log is to begin with is not what it stands
    for: then every entry before it is needed."""
    commit = read_commit(table.storage, version)
    files = live_files(DeltaTable(table.storage.uri(), version=version))
    if commit is None or digest_of(files) != commit.state.files:
        raise LogGapError(
            f"{table.storage.uri('_delta_log')}: the checkpoint of version {version} is damaged",
            remedy=f"see what would mend it: {SEE_DAMAGE}",
        )
