"""Finds out what may still be asked for of a table: files by their paths, versions of its log."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from deltalake import DeltaTable

from headgate.declaration.kinds import BRONZE, LATE, QUARANTINE, SILVER, kind_of
from headgate.maintenance.positions import Batches, Past
from headgate.maintenance.retention import LogReason, Needs
from headgate.maintenance.retention_context import Surroundings
from headgate.savepoints.savepoint import SavedTable
from headgate.tables.live_files import live_paths
from headgate.tables.log import read_commit
from headgate.tables.log_folder import LogFolder
from headgate.tables.state import commit_time
from headgate.tables.table import Table

_READ_BY_STAGES = (BRONZE, SILVER)
_COMPARED = (BRONZE, SILVER, QUARANTINE, LATE)

Saved = tuple[SavedTable, int]
"""A table in a savepoint, and the batch that all tables had absorbed there."""


@dataclass(frozen=True)
class Gathered:
    """``versions`` are the lowest of the log that are needed, by reason. What only savepoints need
    is looked up last, and among few files: there may be many savepoints."""

    table: Table
    needs: Needs
    versions: Mapping[LogReason, int]
    saved_versions: Collection[int]

    def saved_among(self, paths: Iterable[str]) -> frozenset[str]:
        """Those of some files that are live at a version of a savepoint."""
        left, found = set(paths), set[str]()
        for version in sorted(self.saved_versions):
            if left:
                found |= left & _live_at(self.table, version)
                left -= found
        return frozenset(found)


def gather(table: Table, log: LogFolder, around: Surroundings, since: datetime) -> Gathered:
    """``table`` as last refreshed; ``since`` is the moment from which on readers may have begun.

    Raises LogGapError where an entry is damaged, DeltaError where a version cannot be read.
    """
    past = Past(table.storage, log.oldest)
    version = table.handle.version()
    readers = max(past.before(version, commit_time(since)), log.readable_from)
    saved = tuple(
        (savepoint.tables[table.name], around.saved_n(savepoint))
        for savepoint in around.savepoints
        if table.name in savepoint.tables
    )
    needs = Needs(
        since=since,
        live=live_paths(table.handle),
        batches=tuple(_batches(table, past, around, saved)),
        unpublished=unpublished(table, log, around),
        ledger=_compared(table, past, log, around),
        recent=_live_at(table, readers),
    )
    versions = dict(_versions(table, past, around, saved)) | {"readers": readers}
    return Gathered(table, needs, versions, {at.version for at, _ in saved})


def unpublished(table: Table, log: LogFolder, around: Surroundings) -> frozenset[str]:
    """The files of commits that a publication has still to send."""
    first = min(around.published.get(table.name, ()), default=None)
    if first is None:
        return frozenset()
    behind = range(max(first + 1, log.oldest), table.handle.version() + 1)
    commits = (read_commit(table.storage, version) for version in behind)
    return frozenset(file.path for commit in commits if commit for file in commit.files)


def _versions(
    table: Table, past: Past, around: Surroundings, saved: Iterable[Saved]
) -> Iterator[tuple[LogReason, int]]:
    version = table.handle.version()
    yield "position", _position(past, version)
    if kind_of(table.name) in _COMPARED:
        yield "batches", past.reaching(version, around.n).version
    if published := around.published.get(table.name):
        yield "unpublished", min(published)
    if oldest := [_needed_by(table, past, each) for each in saved]:
        yield "savepoints", min(oldest)
    if kind_of(table.name) == BRONZE and around.is_open:
        yield "reset", past.state(version).reset_commit


def _position(past: Past, version: int) -> int:
    """Of what a version says of itself: where it stands, and its last batch."""
    newest = past.commit(version)
    return min(newest.version, newest.state.data_commit or newest.version)


def _needed_by(table: Table, past: Past, each: Saved) -> int:
    position = _position(past, each[0].version)
    if kind_of(table.name) not in _COMPARED:
        return position
    places = _read_after(table, each)
    return min(position, *(past.reaching(version, n).version for version, n in places))


def _batches(
    table: Table, past: Past, around: Surroundings, saved: Iterable[Saved]
) -> Iterator[Batches]:
    """What stages read by name: from where they are, and from where a savepoint takes them."""
    if kind_of(table.name) not in _READ_BY_STAGES:
        return
    places = {(table.handle.version(), around.n)}
    for each in saved:
        places |= _read_after(table, each)
    for version, n in sorted(places):
        first = past.reaching(version, n).state.generation
        yield Batches(first, past.state(version).generation, n)


def _read_after(table: Table, each: Saved) -> set[tuple[int, int]]:
    """From which batch on, of which version, stages read when a savepoint was restored: bronze
    may go back with them, or stay as it is."""
    saved, n = each
    places = {(saved.version, n)}
    if kind_of(table.name) == BRONZE:
        places.add((table.handle.version(), n))
    return places


def _compared(table: Table, past: Past, log: LogFolder, around: Surroundings) -> frozenset[str]:
    """What was live where the tables stood that lag behind this one."""
    at = past.reaching(table.handle.version(), around.n)
    if kind_of(table.name) not in _COMPARED or at.state.n >= table.state.n:
        return frozenset()
    return _live_at(table, max(at.version, log.readable_from))


def _live_at(table: Table, version: int) -> frozenset[str]:
    if version == table.handle.version():
        return live_paths(table.handle)
    return live_paths(DeltaTable(table.storage.uri(), version=version))
