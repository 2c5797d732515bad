"""The stage of a publication to a mirror: updates its rows from one table version to the next.

A mirror needs no more than the files that were added and removed between two versions, for commits
of any kind: batches, operations, a restore, a rebuild. Commits that only move rows between files
(maintenance, and OPTIMIZE of other tools) change no row. But a later commit may replace the files
that they have written, so these files count, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from headgate.commands import pipeline_command
from headgate.declaration.model import Pipeline
from headgate.failpoints import failpoint
from headgate.flow.publish.mirror_calls import Call, CallingStage
from headgate.flow.publish.publication import (
    JSON,
    MOST_UNSENT,
    PublishedPosition,
    identity_of,
    log_id,
)
from headgate.flow.publish.sinks.writers import (
    KEY,
    Mirror,
    MirrorVersion,
    SinkRefusalError,
    VersionDifference,
    parts_of,
)
from headgate.lake.tables.data_file import FINAL, DataFile
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.frames import TableRows, arrow_schema, row_type
from headgate.lake.tables.history import grouped, removed_file, with_footers
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.log import Commit, list_log, read_commit
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table


@dataclass(frozen=True)
class NetFiles:
    """The files whose rows are new in the version ``upto``, and the files whose rows were removed.
    ``removed`` is None if it is unknown: then ``added`` has all rows of the version. ``state`` is
    the table's state at that version."""

    upto: int
    state: State
    added: tuple[DataFile, ...]
    removed: tuple[DataFile, ...] | None

    @property
    def is_empty(self) -> bool:
        return not self.added and self.removed == ()


def all_files(table: Table) -> NetFiles:
    """All files of the refreshed table."""
    state, version = table.state, table.version
    files = with_footers(table, version, live_files(table.handle))
    return NetFiles(version, state, files, None)


def net_files(table: Table, after: int, most_rows: int) -> NetFiles:
    """The difference between the version ``after`` and a later one of the refreshed table: the
    newest, or the first with more than ``most_rows`` new rows.

    Returns the whole table if the log no longer reaches back to ``after``, if a file is missing, if
    another tool has moved rows, or if the columns have changed, because the table's type cannot
    read the older files. Raises LogGapError.
    """
    try:
        commits, upto, state = _commits(table, after, most_rows)
    except LogGapError:
        if not list_log(table.storage).is_trimmed(after + 1):
            raise
        return all_files(table)
    if commits is None or _has_other_columns(table, after, commits):
        return all_files(table)
    added: dict[str, DataFile] = {}
    removed: dict[str, bool] = {}
    for commit in commits:
        for path in commit.removed:
            if added.pop(path, None) is None:
                removed[path] = path in commit.removed_final
        for file in commit.files:
            # A restore brings files back.
            if removed.pop(file.path, None) is None:
                added[file.path] = file
    gone = [removed_file(table, path, is_final=final) for path, final in removed.items()]
    if None in gone or not all(table.storage.exists(path) for path in added):
        return all_files(table)
    sound = with_footers(table, upto, added.values())
    return NetFiles(upto, state, sound, tuple(file for file in gone if file is not None))


def _commits(table: Table, after: int, most_rows: int) -> tuple[list[Commit] | None, int, State]:
    """The commits that change or move rows, and the version and state after the last one. There are
    no commits if rows are only moved. They are None if another tool has made one of them: the files
    that it has moved are unknown."""
    newest = table.version
    found: list[Commit] = []
    rows, changes, is_known = 0, False, True
    upto, state = newest, table.state
    for version in range(after + 1, newest + 1):
        commit = read_commit(table.storage, version)
        if commit is None:
            is_known = False
        elif commit.files or commit.removed:
            found.append(commit)
            rows += commit.rows
            changes = changes or commit.state.kind != "maintenance"
            if rows > most_rows and changes:
                upto, state = version, commit.state
                break
    if not changes:
        return [], upto, state
    return (found if is_known else None), upto, state


def _has_other_columns(table: Table, after: int, commits: list[Commit]) -> bool:
    """Whether files of the version ``after`` or of later ones may have other columns than the table
    has now. Only a reset changes the type of a column."""
    shape = table.state.shape
    if any(commit.state.shape != shape for commit in commits):
        return True
    if all(commit.state.kind != "reset" for commit in commits):
        return False
    try:
        before = read_commit(table.storage, after)
    except LogGapError:
        return True
    return before is not None and before.state.shape != shape


ROWS_PER_STEP = 200_000
"""Versions are combined up to this many rows, and rows are sent in parts of about this size."""

_DIGEST = "_digest"


class ClosedError(Exception):
    """The driver ends while rows are sent. None of them is stored."""


class MirrorStage(CallingStage):
    """For a sink that keeps a table."""

    def __init__(
        self, spark: SparkSession, pipeline: Pipeline, position: PublishedPosition, mirror: Mirror
    ) -> None:
        super().__init__(position, mirror)
        self._rows = TableRows(spark, self.source)
        self._identity = identity_of(pipeline, self.publication)
        # A version of the mirror and a newer one of the table, between which nothing is to be sent.
        self._equal: tuple[MirrorVersion | None, int] | None = None

    def _next(self, now: datetime, held: MirrorVersion | None) -> Call | None:
        self.source.refresh()
        newest = self.source.version
        if held is not None:
            self._require_own(held, newest)
        if (net := self._net(held, newest)) is not None:
            return partial(self._apply, net, held)
        if held is not None and self._position.version < held.number:
            self._position.move(held.number, now, held.n)
        self._equal = held, newest
        return None

    def _moved(self, now: datetime, held: MirrorVersion) -> None:
        failpoint("publish.sent")
        self._position.move(held.number, now, held.n)
        failpoint("publish.committed")

    def _apply(self, net: NetFiles, held: MirrorVersion | None) -> MirrorVersion:
        upto = self._version(net)
        self._mirror.apply(self._difference(net, held, upto))
        return upto

    def _net(self, held: MirrorVersion | None, newest: int) -> NetFiles | None:
        """The next change of the mirror; None if it has the newest rows."""
        if held is None:
            return all_files(self.source)
        if held.number >= newest or self._equal == (held, newest):
            return None
        net = net_files(self.source, held.number, ROWS_PER_STEP)
        if net.is_empty and newest - held.number < MOST_UNSENT:
            return None
        return net

    def _version(self, net: NetFiles) -> MirrorVersion:
        return MirrorVersion(self._table_id, net.upto, net.state.files, net.state.n)

    @cached_property
    def _table_id(self) -> str:
        """Read once: it never changes, and reading it accesses the log and a document."""
        return log_id(self.source)

    def _require_own(self, held: MirrorVersion, newest: int) -> None:
        """Raises SinkRefusalError unless the mirror has the rows of a version of this log."""
        if held.table == self._table_id and held.number <= newest:
            try:
                commit = read_commit(self.source.storage, held.number)
            except LogGapError:
                if not list_log(self.source.storage).is_trimmed(held.number):
                    raise
                return
            if commit is None or commit.state.files == held.files:
                return
        name = self.publication.name
        raise SinkRefusalError(
            f"it has rows of another copy of {self.source.name}, or of versions that a repair has "
            f"removed. To replace them by those of this table: "
            f"{pipeline_command('publication reset', name)}"
        )

    def _difference(
        self, net: NetFiles, held: MirrorVersion | None, upto: MirrorVersion
    ) -> VersionDifference:
        type_ = self._type()
        added = [file for file in net.added if self.is_sent(file)]
        if net.removed is None:
            rows: Iterable[pa.Table] = self._all(added, type_)
            gone = None
        else:
            removed = [file for file in net.removed if self.is_sent(file)]
            rows, gone = self._changed(added, removed, type_)
        schema = arrow_schema(type_)
        return VersionDifference(rows, gone, schema, tuple(self._identity), held, upto)

    def _all(self, files: Sequence[DataFile], type_: StructType) -> Iterator[pa.Table]:
        for group in grouped(files, ROWS_PER_STEP):
            yield from self._in_parts(self._keyed(group, type_), group)

    def _changed(
        self, added: Sequence[DataFile], removed: Sequence[DataFile], type_: StructType
    ) -> tuple[Iterable[pa.Table], pa.Table]:
        """The rows that are changed or new, and the keys of the rows that were removed."""
        new = self._keyed(added, type_)
        if not removed:
            return self._in_parts(new, added), pa.table({KEY: pa.array([], pa.binary())})
        old = self._keyed(removed, type_).select(KEY, _DIGEST)
        changed = new.join(old, [KEY, _DIGEST], "left_anti")
        gone = _arrow(old.select(KEY).join(new.select(KEY), KEY, "left_anti"))
        return self._in_parts(changed, added), gone

    def _in_parts(self, rows: DataFrame, files: Sequence[DataFile]) -> Iterable[pa.Table]:
        """Some rows of files, in parts (``parts_of``). If there is only one, it is read at once,
        before the sink begins its transaction."""
        count, size = sum(file.rows for file in files), sum(file.size for file in files)
        if parts_of(count, ROWS_PER_STEP, size) > 1:
            return self._parts(rows.drop(_DIGEST), size / max(count, 1))
        self._require_open()
        return [_arrow(rows.drop(_DIGEST))]

    def _parts(self, rows: DataFrame, size: float) -> Iterator[pa.Table]:
        """The rows are computed once, to a disk, and read once for each part. ``size`` is that of a
        row in a file, in bytes."""
        kept = rows.persist(StorageLevel.DISK_ONLY)
        try:
            count = kept.count()
            parts = parts_of(count, ROWS_PER_STEP, int(size * count))
            for part in range(parts):
                self._require_open()
                yield _arrow(kept.where(F.pmod(F.xxhash64(KEY), F.lit(parts)) == part))
        finally:
            kept.unpersist()

    def _require_open(self) -> None:
        """Raises ClosedError."""
        if self._calls.is_closed:
            raise ClosedError

    def _type(self) -> StructType:
        """The type of the rows, in the order of the table's columns."""
        return row_type(self.source)

    def _keyed(self, files: Sequence[DataFile], type_: StructType) -> DataFrame:
        """The rows of some files with ``KEY``, a digest of the row, and nested values as JSON."""
        rows = self._rows.of(files)
        if self.publication.layer == "gold":
            rows = self._rows.of([f for f in files if f.is_final]).withColumn(FINAL, F.lit(True))
            opened = [f for f in files if not f.is_final]
            if opened:
                rows = rows.unionByName(self._rows.of(opened).withColumn(FINAL, F.lit(False)))
        columns = [_flat(field) for field in type_.fields]
        whole_row = [f"`{field.name}`" for field in type_.fields]
        return rows.select(_hash(self._identity).alias(KEY), *columns, _row(whole_row))


def _hash(names: Iterable[str]) -> Column:
    return F.unhex(F.sha2(F.to_json(F.struct(*(f"`{name}`" for name in names)), JSON), 256))


def _row(columns: Sequence[str]) -> Column:
    return F.unhex(F.sha2(F.to_json(F.struct(*columns), JSON), 256)).alias(_DIGEST)


def _flat(field: StructField) -> Column:
    column = F.col(f"`{field.name}`")
    return F.to_json(column, JSON).alias(field.name) if _is_nested(field.dataType) else column


def _is_nested(type_: DataType) -> bool:
    return isinstance(type_, ArrayType | MapType | StructType)


def _arrow(frame: DataFrame) -> pa.Table:
    return frame.toArrow()
