"""The commits of a gold table that a rollup has not followed yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from headgate.commands import pipeline_command
from headgate.declaration.contracts.operator import begin_of, operator_of
from headgate.declaration.model import GoldTable
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.history import ROWS_PER_STEP, grouped, lineage, removed_file
from headgate.lake.tables.live_files import overlapping_files
from headgate.lake.tables.log import Commit
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.snapshot import TablePosition
from headgate.lake.tables.spans import Span, united
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table

_FIRST = -62_135_596_800_000_000
"""The first microsecond of the year 1: an earlier one is no time."""


@dataclass(frozen=True)
class FinalChange:
    """What some commits have done to the final rows: the files with new rows, and those that the
    commits have removed; of their rows, those of the ``moved`` files are still there. ``last`` is
    the last commit."""

    last: Commit
    new: tuple[DataFile, ...]
    removed: tuple[DataFile, ...] = ()
    moved: tuple[DataFile, ...] = ()

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.new)


def changes_after(table: Table, n: int, operation: int) -> tuple[FinalChange, ...] | None:
    """The changes of the commits after batch id ``n`` and an operation, oldest first, as the table
    was last refreshed. None if the table's log, or a file, is no longer there."""
    found = []
    for commit in lineage(table, table.version):
        if commit.state.n <= n and commit.state.operation <= operation:
            break
        if commit.state.kind in ("data", "operation"):
            found.append(commit)
    else:
        return None
    changes = [_change(table, commit) for commit in reversed(found)]
    return None if None in changes else tuple(each for each in changes if each)


def _change(table: Table, commit: Commit) -> FinalChange | None:
    final = [file for file in commit.files if file.is_final]
    new = tuple(file for file in final if file.path not in commit.moved)
    removed = [removed_file(table, path, is_final=True) for path in sorted(commit.removed_final)]
    there = tuple(file for file in removed if file is not None)
    if len(there) < len(removed) or not all(table.storage.exists(f.path) for f in final):
        return None
    return FinalChange(commit, new, there, tuple(f for f in final if f.path in commit.moved))


def steps(changes: Sequence[FinalChange], upto: int, operation: int) -> Iterator[FinalChange]:
    """The batches up to a batch id and the next operation, in groups that one commit follows.
    ``operation`` is the last one that the rollup has carried out. If the other table could not
    follow its own, its commit contains later ones, and all batches between them: it is followed
    whatever its batch id is, because no commit reaches ``upto``."""
    batches = []
    for change in changes:
        state = change.last.state
        if state.kind != "data" or (state.n > upto and state.operation <= operation):
            break
        batches.append(change)
        operation = state.operation
    # Rows that a commit has removed may come back with the next one, so it is followed alone.
    for version, alike in groupby(batches, lambda c: c.last.version if c.removed else 0):
        for group in grouped(alike, ROWS_PER_STEP):
            new = tuple(file for each in group for file in each.new)
            yield group[0] if version else FinalChange(group[-1].last, new)


def final_files_within(
    above: GoldTable, at: TablePosition, spans: Iterable[Span]
) -> tuple[DataFile, ...]:
    """The files of a version of a gold table whose final rows may have event times in some spans,
    as a rollup reads them: the last microsecond of a result. Files have bounds of begins alone."""
    operator, longest = operator_of(above), GoldPayload.of(at.state).longest
    begins = []
    for first, last in spans:
        is_time = first > _FIRST
        earliest = operator.first_after(above.operator, first) if is_time else None
        begins.append((earliest[0] if earliest else first - longest, last))
    (begin,) = begin_of(above)
    found = overlapping_files(at.handle, begin, united(begins))
    return tuple(file for file in found if file.is_final)


def gap(rollup: str, table: Table, state: State) -> LogGapError:
    return LogGapError(
        f"{rollup} is at batch {state.n:,} of {table.name}, whose log or files no longer reach "
        "back to it",
        remedy="rebuild the table: "
        + pipeline_command("run", "--full-refresh", rollup.replace("/", ".")),
    )
