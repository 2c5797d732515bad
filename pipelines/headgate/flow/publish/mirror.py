"""The stage of a publication to a mirror: updates its rows from one table version to the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
from headgate.flow.publish.difference import NetFiles, net_files, whole
from headgate.flow.publish.identity import JSON, identity_of, log_id
from headgate.flow.publish.mirror_calls import Call, CallingStage
from headgate.flow.publish.position import MOST_UNSENT, Position
from headgate.flow.publish.sinks.writers import (
    KEY,
    Difference,
    Mirror,
    SinkRefusalError,
    Version,
    parts_of,
)
from headgate.lake.tables.catching_up import grouped
from headgate.lake.tables.data_file import FINAL, DataFile
from headgate.lake.tables.errors import LogGapError
from headgate.lake.tables.frames import Rows, arrow_schema, row_type
from headgate.lake.tables.log import read_commit
from headgate.lake.tables.log_folder import log_folder

ROWS_PER_STEP = 200_000
"""Versions are combined up to this many rows, and rows are sent in parts of about this size."""

_DIGEST = "_digest"


class ClosedError(Exception):
    """The driver ends while rows are sent. None of them is stored."""


class MirrorStage(CallingStage):
    """For a sink that keeps a table."""

    def __init__(
        self, spark: SparkSession, pipeline: Pipeline, position: Position, mirror: Mirror
    ) -> None:
        super().__init__(position, mirror)
        self._rows = Rows(spark, self.source)
        self._identity = identity_of(pipeline, self.publication)
        # A version of the mirror and a newer one of the table, between which nothing is to be sent.
        self._equal: tuple[Version | None, int] | None = None

    def _next(self, now: datetime, held: Version | None) -> Call | None:
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

    def _moved(self, now: datetime, held: Version) -> None:
        failpoint("publish.sent")
        self._position.move(held.number, now, held.n)
        failpoint("publish.committed")

    def _apply(self, net: NetFiles, held: Version | None) -> Version:
        upto = self._version(net)
        self._mirror.apply(self._difference(net, held, upto))
        return upto

    def _net(self, held: Version | None, newest: int) -> NetFiles | None:
        """The next change of the mirror; None if it has the newest rows."""
        if held is None:
            return whole(self.source)
        if held.number >= newest or self._equal == (held, newest):
            return None
        net = net_files(self.source, held.number, ROWS_PER_STEP)
        if net.is_empty and newest - held.number < MOST_UNSENT:
            return None
        return net

    def _version(self, net: NetFiles) -> Version:
        return Version(self._table_id, net.upto, net.state.files, net.state.n)

    @cached_property
    def _table_id(self) -> str:
        """Read once: it never changes, and reading it accesses the log and a document."""
        return log_id(self.source)

    def _require_own(self, held: Version, newest: int) -> None:
        """Raises SinkRefusalError unless the mirror has the rows of a version of this log."""
        if held.table == self._table_id and held.number <= newest:
            try:
                commit = read_commit(self.source.storage, held.number)
            except LogGapError:
                if not log_folder(self.source.storage).is_trimmed(held.number):
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

    def _difference(self, net: NetFiles, held: Version | None, upto: Version) -> Difference:
        type_ = self._type()
        added = [file for file in net.added if self.is_sent(file)]
        if net.removed is None:
            rows: Iterable[pa.Table] = self._all(added, type_)
            gone = None
        else:
            removed = [file for file in net.removed if self.is_sent(file)]
            rows, gone = self._changed(added, removed, type_)
        schema = arrow_schema(type_)
        return Difference(rows, gone, schema, tuple(self._identity), held, upto)

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
