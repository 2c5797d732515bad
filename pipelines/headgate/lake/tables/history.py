"""Reads batches back from a log: the files that commits added, in order, without a gap.

So a stage gets the upstream batches that it has not processed yet, in steps; and an earlier batch
has the files that its table had then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import reduce
from typing import Protocol, TypeVar

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from headgate.commands import SEE_DAMAGE, pipeline_command
from headgate.declaration.kinds import GOLD, LATE, kind_of, name_of
from headgate.lake.tables.data_file import FINAL, DataFile
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.log import Commit, list_log, read_commit
from headgate.lake.tables.state import (
    NO_WATERMARKS,
    Counts,
    Payload,
    SourceWatermarks,
    State,
    add_counts,
)
from headgate.lake.tables.table import Table

Watermarks = Mapping[int, SourceWatermarks]
"""The watermarks of a source, by batch id."""
NOT_KNOWN: Watermarks = {}


def lineage(table: Table, version: int | None = None) -> Iterator[Commit]:
    """The commits that led to a version (default: the newest), newest first, as far back as
    maintenance has kept them.

    A reset is followed by the version that it restored; commits in between are skipped. The lineage
    begins at a reset that emptied the table or published a rebuild. Raises LogGapError if a commit
    is missing.
    """
    if version is None:
        table.refresh()
    at: int | None = table.version if version is None else version
    begins = True
    while at is not None and at >= 0:
        try:
            commit = read_commit(table.log, at)
        except LogGapError:
            if not begins and list_log(table.log).is_trimmed(at):
                return
            raise
        if commit is None:
            at -= 1
            continue
        yield commit
        begins = False
        at = commit.state.origin if commit.state.kind == "reset" else at - 1


def commit_at(table: Table, n: int, version: int | None = None) -> Commit:
    """The newest commit up to a version (default: the newest) at which a table had processed batch
    id ``n`` and no further. Raises LogGapError if its log no longer has it."""
    for commit in lineage(table, version):
        if commit.state.n <= n:
            return commit
    raise LogGapError(
        f"{table.name}: its log does not reach back to batch {n}",
        remedy=f"see what is damaged: {SEE_DAMAGE}",
    )


def sum_of_counts(commits: Iterable[Commit]) -> Counts:
    """The sum of the counts of some commits."""
    return reduce(add_counts, (commit.state.batch for commit in commits), {})


def batches(
    table: Table, after: int, upto: int, watermarks: Watermarks = NOT_KNOWN
) -> tuple[Commit, ...]:
    """The data commits that processed the batch ids ``(after, upto]``, oldest first.

    If maintenance has removed entries or files of the first commits, one commit replaces these,
    with the live files that have the same rows. ``watermarks`` are those of the source at
    operations: every rebuild of the table ends a file at their batch ids. Raises LogGapError if a
    batch is missing.
    """
    if upto <= after:
        return ()
    table.refresh()
    walked = tuple(_walk_back(table, after))
    found = tuple(c for c in reversed(walked) if _processed(c, after, upto))
    if walked[-1].state.n > after or not _all_there(table, walked, found):
        found = _from_live_files(table, walked, after, upto, watermarks)
    reached = after
    for batch in found:
        if batch.state.from_n != reached:
            raise _gap(table, reached, batch.state.from_n)
        reached = batch.state.n
    if reached != upto:
        raise _gap(table, reached, upto)
    return found


def _walk_back(table: Table, after: int) -> Iterator[Commit]:
    """Commits of the lineage, newest first, back to one at batch id ``after`` or before."""
    for commit in lineage(table, table.version):
        yield commit
        if commit.state.n <= after:
            return


def _processed(commit: Commit, after: int, upto: int) -> bool:
    return commit.state.kind == "data" and after < commit.state.n <= upto


def _all_there(table: Table, walked: Sequence[Commit], found: Sequence[Commit]) -> bool:
    """Whether all files that maintenance may have removed still exist."""
    merged = {path for c in walked if c.state.kind == "maintenance" for path in c.removed}
    files = (file.path for commit in found for file in commit.files)
    return all(table.storage.exists(path) for path in files if path in merged)


def _from_live_files(
    table: Table, walked: Sequence[Commit], after: int, upto: int, watermarks: Watermarks
) -> tuple[Commit, ...]:
    """One commit for all batches up to the last one whose commit or files are missing, then the
    later commits. The live files have each row of these batches once, and the names of their
    folders contain their last batch ids."""
    live, begins = live_files(table.handle), walked[-1].state
    if not all(file.is_ours for file in live):
        raise _gap(table, after, upto)
    # A rebuild groups batches differently, so a reader of the former table can continue in it only
    # at a batch id where every rebuild ends a file. Bronze has a file for each batch, and an input
    # log has none.
    is_derived = not kind_of(table.name).numbers_batches
    is_rebuilt = begins.kind == "reset" and begins.origin is None and is_derived
    if is_rebuilt and 0 < after < begins.n and after not in watermarks:
        raise _gap(table, after, begins.n)
    merged = (file.n for file in live if file.merged_from is not None)
    base = min(max((after, walked[-1].state.n, *merged)), upto)
    if any(file.is_across(n) for file in live for n in (after, base)):
        raise _gap(table, after, base)
    later = tuple(c for c in reversed(walked) if _processed(c, base, upto))
    if base == after:
        return later
    files = tuple(file for file in live if after < file.n <= base)
    at_base = next((c.state for c in walked if c.state.n == base), None)
    # If that batch's watermark is unknown, windows become final with the next batch.
    payload = at_base.payload if at_base else _payload_at(table, base, watermarks)
    state = State(payload, kind="data", from_n=after, n=base)
    version = table.version
    return (Commit(version, state, with_footers(table, version, files)), *later)


def _payload_at(table: Table, n: int, watermarks: Watermarks) -> Payload:
    return table.state.payload.as_of(watermarks.get(n, NO_WATERMARKS))


class Footers:
    """The checksums of a table's footers. Each entry of the log is read once, back to the oldest
    file that was requested."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._known: dict[str, int] = {}
        self._newest = -1
        self._older: Iterator[Commit] = iter(())

    def of(self, version: int, files: Iterable[DataFile]) -> tuple[DataFile, ...]:
        """Some files of a version, with the checksums of their footers if the log still has them.
        Versions must not decrease from call to call."""
        wanted = tuple(files)
        with suppress(LogGapError):
            self._read_newer(version)
            missing = {file.path for file in wanted} - self._known.keys()
            while missing and (commit := next(self._older, None)) is not None:
                self._known |= commit.state.footers
                missing -= commit.state.footers.keys()
        return tuple(replace(f, footer=self._known.get(f.path, f.footer)) for f in wanted)

    def _read_newer(self, version: int) -> None:
        commits = lineage(self._table, version)
        if self._newest < 0:
            self._older = commits
        elif version > self._newest:
            for commit in commits:
                if commit.version <= self._newest:
                    break
                self._known |= commit.state.footers
        self._newest = version


def with_footers(table: Table, version: int, files: Iterable[DataFile]) -> tuple[DataFile, ...]:
    """``Footers.of`` for a single call."""
    return Footers(table).of(version, files)


def _gap(table: Table, reached: int, following: int) -> LogGapError:
    return LogGapError(
        f"{table.name}: batches {reached + 1} to {following} are not in the table's log",
        remedy=f"see what is damaged: {SEE_DAMAGE}; nothing was written",
    )


ROWS_PER_STEP = 1_000_000
"""Batches are grouped up to this many rows, so that a long backlog needs few steps."""
PARTS_PER_STEP = 1_000
"""Batches are grouped up to this number, so that a step does not read any number of files."""


def batch_steps(
    upstream: Table,
    after: int,
    upto: int,
    watermarks: Watermarks = NOT_KNOWN,
    most_rows: int | None = None,
) -> Iterator[tuple[Commit, ...]]:
    """The upstream batches in ``(after, upto]`` in groups, each to be processed by one commit.
    ``watermarks`` as in ``history.batches``, ``most_rows`` as in ``grouped``, ``ROWS_PER_STEP`` if
    None.

    Raises LogGapError if a batch is missing from the upstream's log.
    """
    most = ROWS_PER_STEP if most_rows is None else most_rows
    return grouped(batches(upstream, after, upto, watermarks), most)


def steps_between(
    upstream: Table,
    after: int,
    stops: Iterable[int],
    watermarks: Watermarks,
    most_rows: int | None = None,
) -> Iterator[tuple[Commit, ...]]:
    """The steps after batch id ``after``. ``stops`` are batch ids in rising order; a step ends at
    each of them. The others as in ``batch_steps``."""
    for stop in stops:
        yield from batch_steps(upstream, after, stop, watermarks, most_rows)
        after = max(after, stop)


class _HasRows(Protocol):
    @property
    def rows(self) -> int: ...


_Part = TypeVar("_Part", bound=_HasRows)


def grouped(found: Iterable[_Part], most_rows: int) -> Iterator[tuple[_Part, ...]]:
    """Consecutive commits or files in groups of at most ``most_rows`` rows and ``PARTS_PER_STEP``
    parts, or of one. With 0, each is a group."""
    group: list[_Part] = []
    rows = 0
    for each in found:
        is_full = len(group) == PARTS_PER_STEP or not most_rows or rows + each.rows > most_rows
        if group and is_full:
            yield tuple(group)
            group, rows = [], 0
        group.append(each)
        rows += each.rows
    if group:
        yield tuple(group)


def files_after(group: Sequence[Commit], after: int = 0) -> tuple[DataFile, ...]:
    """The files of the batches after batch id ``after``."""
    return tuple(f for batch in group if batch.state.n > after for f in batch.files)


def removed_file(table: Table, path: str, *, is_final: bool) -> DataFile | None:
    """A file that was removed from a gold table; None if a vacuum has deleted it."""
    found = table.storage.stat(path)
    return DataFile(path, found.size, 0, "", {FINAL: str(is_final).lower()}) if found else None


Find = Callable[[DeltaTable], tuple[DataFile, ...]]


def files_at(table: Table, n: int, find: Find = live_files) -> tuple[DataFile, ...]:
    """The data files of a table as it was when it had processed batch ``n``. ``find`` returns the
    files of a version that are wanted.

    Raises LogGapError if the log no longer has this batch, and if another tool has rewritten the
    files and has removed those of this batch.
    """
    state, live = table.refresh(), find(table.handle)
    if state.n <= n:
        return live
    # Prefer the live files: the log of a table that is ahead may not reach back so far.
    if all(file.is_ours and not file.is_across(n) for file in live):
        return tuple(file for file in live if file.n <= n)
    is_rewritten = not all(file.is_ours for file in live)
    try:
        files = find(DeltaTable(table.log.uri(), version=commit_at(table, n).version))
    except (LogGapError, DeltaError) as error:
        if is_rewritten:
            raise _rewritten(table, n) from error
        raise
    if is_rewritten and not all(table.storage.exists(file.path) for file in files):
        raise _rewritten(table, n)
    return files


def _rewritten(table: Table, n: int) -> LogGapError:
    layer, name = kind_of(table.name), name_of(table.name)
    rebuilt = (GOLD if layer == LATE else layer).path(name).replace("/", ".")
    return LogGapError(
        f"{table.name}: another tool has rewritten its files, and its rows of the batches up to "
        f"{n:,} are no longer known",
        remedy="rebuild the table: " + pipeline_command("run", "--full-refresh", rebuilt),
    )
