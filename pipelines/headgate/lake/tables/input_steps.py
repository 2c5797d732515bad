"""The batches that several tables are read by, together.

Tables of one source have the same batch ids. Tables of several sources have the batch ids of their
input log: each of its commits says up to which batch of each source a reader is then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.history import (
    NOT_KNOWN,
    ROWS_PER_STEP,
    Watermarks,
    batches,
    files_after,
    grouped,
    lineage,
)
from headgate.lake.tables.log import Commit
from headgate.lake.tables.payloads.inputs import InputsPayload
from headgate.lake.tables.payloads.silver import SilverPayload
from headgate.lake.tables.snapshot import silver_read_at
from headgate.lake.tables.state import NO_WATERMARKS, SourceWatermarks
from headgate.lake.tables.table import Table

BatchIds = Mapping[str, int]
"""The batch id of each table, by its name."""


@dataclass(frozen=True)
class InputStep:
    """The next batches of several upstream tables, up to the batch id ``n``: the files of each,
    and the watermarks then."""

    n: int
    watermarks: SourceWatermarks
    files: tuple[tuple[DataFile, ...], ...]

    @property
    def rows(self) -> int:
        return sum(file.rows for each in self.files for file in each)


class InputTables:
    """Silver tables that are read together. ``tables`` has a reader of each, by its name, and
    ``sources`` the source of each, in the same order. ``log`` is a reader of their input log; None
    if they are of one source."""

    def __init__(
        self, tables: Mapping[str, Table], sources: Sequence[str], log: Table | None
    ) -> None:
        self.tables, self.log = tables, log
        self._sources = dict(zip(tables, sources, strict=True))

    def batch_ids(self, n: int, inputs: BatchIds) -> BatchIds:
        """The batch id of each table for a reader at batch id ``n``. ``inputs`` are those of the
        sources, if there is an input log."""
        return silver_read_at(self._sources, n, inputs)

    def reached(self) -> int:
        """The highest batch id up to which all tables have been processed, and with which a step of
        each has ended. Raises LogGapError."""
        reached = {name: table.refresh().n for name, table in self.tables.items()}
        if self.log is None:
            return min(reached.values())
        ends = {name: _Ends(table) for name, table in self.tables.items()}
        for commit in lineage(self.log):
            wanted = self.batch_ids(commit.state.n, InputsPayload.of(commit.state).inputs)
            behind = all(wanted[name] <= n for name, n in reached.items())
            if behind and all(wanted[name] in each for name, each in ends.items()):
                return commit.state.n
        return 0

    def steps(
        self, after: int, inputs: BatchIds, upto: int, watermarks: Watermarks = NOT_KNOWN
    ) -> Iterator[InputStep]:
        """The steps of a reader from batch id ``after`` up to ``upto``, each to be processed by one
        commit. ``inputs`` are the batch ids of the sources at ``after``, if there is an input log.
        ``watermarks`` as in ``history.batches``. A step ends where the commits of all tables end.
        Raises LogGapError."""
        if upto <= after:
            return
        parts = (
            self._of_one_source(after, upto, watermarks)
            if self.log is None
            else self._of_log(self.log, after, inputs, upto, watermarks)
        )
        for group in grouped(parts, ROWS_PER_STEP):
            files = zip(*(each.files for each in group), strict=True)
            last = group[-1]
            yield InputStep(last.n, last.watermarks, tuple(tuple(chain(*each)) for each in files))

    def _of_one_source(self, after: int, upto: int, watermarks: Watermarks) -> Iterator[InputStep]:
        found = [batches(each, after, upto, watermarks) for each in self.tables.values()]
        ends = set.intersection(*({commit.state.n for commit in each} for each in found))
        begin = after
        for end in sorted(ends):
            within = [_between(each, begin, end) for each in found]
            marks = SilverPayload.of(within[0][-1].state).watermarks
            yield InputStep(end, marks, tuple(map(files_after, within)))
            begin = end

    def _of_log(
        self, log: Table, after: int, inputs: BatchIds, upto: int, watermarks: Watermarks
    ) -> Iterator[InputStep]:
        commits = batches(log, after, upto, watermarks)
        begin = self.batch_ids(after, inputs)
        last = self.batch_ids(upto, InputsPayload.of(commits[-1].state).inputs)
        found = {
            name: batches(table, begin[name], last[name], self._known(name, watermarks))
            for name, table in self.tables.items()
        }
        ends = {name: {c.state.n for c in each} | {begin[name]} for name, each in found.items()}
        for commit in commits:
            payload = InputsPayload.of(commit.state)
            end = self.batch_ids(commit.state.n, payload.inputs)
            if all(end[name] in each for name, each in ends.items()):
                within = (_between(each, begin[name], end[name]) for name, each in found.items())
                yield InputStep(commit.state.n, payload.watermarks, tuple(map(files_after, within)))
                begin = end

    def _known(self, name: str, watermarks: Watermarks) -> Watermarks:
        """The batch ids of a table's source at which every rebuild ends a step."""
        source = self._sources[name]
        found = (each.inputs for each in watermarks.values())
        return {each[source]: NO_WATERMARKS for each in found if source in each}


class _Ends:
    """The batch ids at which steps of a table have ended. Its log is read back as far as needed."""

    def __init__(self, table: Table) -> None:
        self._commits = lineage(table, table.version)
        self._known: set[int] = {0}
        self._lowest: int | None = None

    def __contains__(self, n: int) -> bool:
        while self._lowest is None or n < self._lowest:
            if (commit := next(self._commits, None)) is None:
                # Its earlier commits are trimmed: they have all rows up to this batch id.
                return n in self._known
            self._known.add(commit.state.n)
            self._lowest = commit.state.n
        return n in self._known


def _between(commits: Sequence[Commit], after: int, upto: int) -> list[Commit]:
    return [commit for commit in commits if after < commit.state.n <= upto]
