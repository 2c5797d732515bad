"""Finds which files and log versions of a table may still be read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from deltalake import DeltaTable

from headgate.declaration.kinds import BRONZE, INPUTS, LATE, QUARANTINE, REJECTED, SILVER, kind_of
from headgate.flow.publish.changes import may_remove_results
from headgate.history.maintenance.retention import BatchRange, LogReason, TableNeeds
from headgate.history.maintenance.retention_context import RetentionContext
from headgate.history.savepoints.savepoint import SavedTable
from headgate.lake.tables.live_files import live_paths
from headgate.lake.tables.log import Commit, LogFolder, read_commit
from headgate.lake.tables.log_history import LogHistory
from headgate.lake.tables.state import commit_time
from headgate.lake.tables.table import Table

_READ_BY_STAGES = (BRONZE, SILVER)
_COMPARED = (BRONZE, INPUTS, SILVER, QUARANTINE, REJECTED, LATE)

Saved = tuple[SavedTable, int]
"""A table in a savepoint, and the batch id that all tables of the savepoint had processed."""


@dataclass(frozen=True)
class GatheredNeeds:
    """``versions`` are the lowest log versions that are needed, by reason. What only savepoints
    need is looked up last, and only for few files, because there may be many savepoints."""

    table: Table
    needs: TableNeeds
    versions: Mapping[LogReason, int]
    saved_versions: Collection[int]

    def saved_among(self, paths: Iterable[str]) -> frozenset[str]:
        """The files among ``paths`` that are live at a version of a savepoint."""
        left, found = set(paths), set[str]()
        for version in sorted(self.saved_versions):
            if left:
                found |= left & _live_at(self.table, version)
                left -= found
        return frozenset(found)


def gather_needs(
    table: Table, log: LogFolder, context: RetentionContext, since: datetime
) -> GatheredNeeds:
    """``table`` is read as of its last refresh. ``since`` is the earliest start of a reader to
    protect.

    Raises LogGapError if an entry is damaged, DeltaError if a version cannot be read.
    """
    history = LogHistory(table.storage, log.oldest)
    version = table.version
    readers = max(history.before(version, commit_time(since)), log.readable_from)
    saved = tuple(
        (savepoint.tables[table.name], context.saved_n(savepoint, table.name))
        for savepoint in context.savepoints
        if table.name in savepoint.tables
    )
    needs = TableNeeds(
        since=since,
        live=live_paths(table.handle),
        batches=tuple(_batches(table, history, context, saved)),
        unpublished=unpublished_files(table, log, context),
        ledger=_compared(table, history, log, context),
        recent=_live_at(table, readers) | _brought_back(history, readers, version),
    )
    versions = dict(_versions(table, history, context, saved)) | {"readers": readers}
    return GatheredNeeds(table, needs, versions, {at.version for at, _ in saved})


def unpublished_files(table: Table, log: LogFolder, context: RetentionContext) -> frozenset[str]:
    """The files of commits that a publication has not sent yet, or a rollup not followed, and those
    whose rows they may have to delete. A rollup also reads the rows that the table had then."""
    followed = context.followed.get(table.name, ())
    first = min((*context.published.get(table.name, ()), *followed), default=None)
    if first is None:
        return frozenset()
    behind = range(max(first + 1, log.oldest), table.version + 1)
    commits = (read_commit(table.storage, version) for version in behind)
    found = frozenset(path for commit in commits if commit for path in _published_of(commit))
    at = max(min(followed, default=table.version), log.readable_from)
    return found if at >= table.version else found | _live_at(table, at)


def _published_of(commit: Commit) -> Iterator[str]:
    yield from (file.path for file in commit.files)
    if may_remove_results(commit):
        yield from commit.removed


def _versions(
    table: Table, history: LogHistory, context: RetentionContext, saved: Iterable[Saved]
) -> Iterator[tuple[LogReason, int]]:
    version = table.version
    yield "position", _position(history, version)
    if kind_of(table.name) in _COMPARED:
        yield "batches", history.reaching(version, context.n(table.name)).version
    readers = (context.published.get(table.name, ()), context.followed.get(table.name, ()))
    if behind := [*chain.from_iterable(readers)]:
        yield "unpublished", min(behind)
    if oldest := [_needed_by(table, history, each) for each in saved]:
        yield "savepoints", min(oldest)


def _position(history: LogHistory, version: int) -> int:
    """The lowest log version that has the state and the last batch of a version."""
    newest = history.commit(version)
    return min(newest.version, newest.state.data_commit or newest.version)


def _needed_by(table: Table, history: LogHistory, each: Saved) -> int:
    position = _position(history, each[0].version)
    if kind_of(table.name) not in _COMPARED:
        return position
    places = _read_after(table, each)
    return min(position, *(history.reaching(version, n).version for version, n in places))


def _batches(
    table: Table, history: LogHistory, context: RetentionContext, saved: Iterable[Saved]
) -> Iterator[BatchRange]:
    """The batches whose files stages read by name, now or after a restore of a savepoint."""
    if kind_of(table.name) not in _READ_BY_STAGES:
        return
    places = {(table.version, context.n(table.name))}
    for each in saved:
        places |= _read_after(table, each)
    for version, n in sorted(places):
        first = history.reaching(version, n).state.generation
        yield BatchRange(first, history.state(version).generation, n)


def _read_after(table: Table, each: Saved) -> set[tuple[int, int]]:
    """The version and batch after which stages read if a savepoint is restored. Bronze may go back
    with the other tables, or stay as it is."""
    saved, n = each
    places = {(saved.version, n)}
    if kind_of(table.name).numbers_batches:
        places.add((table.version, n))
    return places


def _brought_back(history: LogHistory, after: int, version: int) -> frozenset[str]:
    """The files that resets have added since a version. They were written earlier, by a rebuild or
    before a restore."""
    return frozenset(f.path for reset in history.resets(after, version) for f in reset.files)


def _compared(
    table: Table, history: LogHistory, log: LogFolder, context: RetentionContext
) -> frozenset[str]:
    """If other tables are behind this one, the files that were live at the batch id that all tables
    have processed."""
    at = history.reaching(table.version, context.n(table.name))
    if kind_of(table.name) not in _COMPARED or at.state.n >= table.state.n:
        return frozenset()
    return _live_at(table, max(at.version, log.readable_from))


def _live_at(table: Table, version: int) -> frozenset[str]:
    if version == table.version:
        return live_paths(table.handle)
    return live_paths(DeltaTable(table.storage.uri(), version=version))
