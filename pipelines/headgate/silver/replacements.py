"""Copies of rejected rows: reads them, and makes rows of silver of those that meet the rules.

In most steps there is nothing to do, and the log alone or one column of bronze says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from headgate.silver.copies import Copy, Earlier, candidates, first_copies
from headgate.silver.transform import REJECTED, SilverTransform
from headgate.storage.files import Storage
from headgate.tables.damage import require_sound
from headgate.tables.data_file import DataFile
from headgate.tables.live_files import live_files, overlapping_files
from headgate.tables.replay import Position, mended_by
from headgate.tables.table import Table

_COPY = ("partition", "offset", "event_id", "event_time")
_OF_SILVER = ("_partition", "_offset", "_event_id", "_event_time")

BronzeRows = Callable[[Sequence[DataFile]], DataFrame]


class Replacements:
    """Of one silver table and its ``rejected`` rows. ``within`` is how far apart copies of an id
    may be, in microseconds; None if the declaration has no rule for duplicates."""

    def __init__(
        self, spark: SparkSession, bronze: Table, silver: Table, rejected: Table, within: int | None
    ) -> None:
        self._spark, self._within = spark, within
        self._bronze, self._silver, self._rejected = bronze, silver, rejected

    def of(
        self,
        transform: SilverTransform,
        rows_of: BronzeRows,
        files: Sequence[DataFile],
        kept: Sequence[DataFile],
        apart: Sequence[DataFile],
    ) -> pa.Table:
        """The rows of silver that take the place of rejected ones, in a step over some ``files`` of
        bronze. ``kept`` and ``apart`` are the step's files of silver and of
        rejected rows. Raises OSError where a file is damaged."""
        nothing = pa.table({})
        if not apart and not self._rejected.state.total.get("rejected"):
            return nothing
        duplicates = self._duplicates(files)
        found = self._candidates(duplicates, kept, apart) if len(duplicates) else []
        if not found:
            return nothing
        rows = self._conforming(rows_of(files), found, transform)
        passed = set(_positions(rows))
        taken = first_copies((row for row in found if row.position in passed), self._within)
        wanted = {row.position for row in taken}
        return rows.filter(pa.array([each in wanted for each in _positions(rows)], pa.bool_()))

    def _duplicates(self, files: Sequence[DataFile]) -> pa.Table:
        """The duplicates among some files of bronze, with ``headers`` where one is a copy."""
        storage = self._bronze.storage
        require_sound(storage, files)
        found = []
        for file in files:
            with storage.open(file.path) as source:
                parquet = pq.ParquetFile(source, page_checksum_verification=True)
                if pc.any(parquet.read(columns=["duplicate"]).column(0)).as_py():
                    found.append(_duplicates(parquet))
        return pa.concat_tables(found) if found else pa.table({})

    def _candidates(
        self, duplicates: pa.Table, kept: Sequence[DataFile], apart: Sequence[DataFile]
    ) -> list[Copy]:
        copies = pc.any(pc.less(duplicates.column("partition"), 0)).as_py()
        ids = pc.unique(duplicates.column("event_id"))
        spans = self._spans(duplicates)
        handle, storage = self._rejected.handle, self._silver.storage
        # A replay may have changed the time of a record, so it looks everywhere.
        files = live_files(handle) if copies else overlapping_files(handle, _COPY[3], spans)
        rejected = Earlier(self._within, _rows(self._rejected.storage, files, _COPY, ids))
        for row in _rows(storage, apart, _OF_SILVER, ids):
            rejected.add(row)
        known = pa.array(sorted(rejected.ids), pa.string())
        duplicates = duplicates.filter(pc.is_in(duplicates.column("event_id"), value_set=known))
        if not len(duplicates):
            return []
        files = overlapping_files(self._silver.handle, _OF_SILVER[3], self._spans(duplicates))
        in_silver = Earlier(self._within, _rows(storage, [*files, *kept], _OF_SILVER, known))
        return list(candidates(_copies(duplicates), rejected, in_silver))

    def _spans(self, duplicates: pa.Table) -> list[tuple[int, int]]:
        """The event times that copies of some rows may have."""
        times = duplicates.column("event_time")
        within = self._within or 0
        return [(pc.min(times).as_py() - within, pc.max(times).as_py() + within)]

    def _conforming(
        self, bronze: DataFrame, copies: Sequence[Copy], transform: SilverTransform
    ) -> pa.Table:
        """The rows of silver that some duplicates would be, if they were none. Those that break a
        rule, or that the table's ``where`` does not want, are left out."""
        wanted = pa.table(
            {
                "partition": pa.array([copy.position.partition for copy in copies], pa.int32()),
                "offset": pa.array([copy.position.offset for copy in copies], pa.int64()),
            }
        )
        known = F.broadcast(self._spark.createDataFrame(wanted))
        rows = bronze.join(known, wanted.column_names).withColumn("duplicate", F.lit(False))
        conformed = transform.conformed(rows, Observation())
        return conformed.where(~F.col(REJECTED)).drop(REJECTED).toArrow()


def _duplicates(parquet: pq.ParquetFile) -> pa.Table:
    rows = parquet.read(columns=[*_COPY, "duplicate", "reason"])
    headers = pa.chunked_array([pa.nulls(len(rows))])
    if pc.any(pc.less(rows.column("partition"), 0)).as_py():
        headers = parquet.read(columns=["headers"]).column(0)
    rows = _in_micros(rows).append_column("headers", headers)
    valid = pc.and_(rows.column("duplicate"), pc.is_null(rows.column("reason")))
    return rows.filter(valid).select([*_COPY, "headers"])


def _rows(
    storage: Storage, files: Iterable[DataFile], names: Sequence[str], ids: pa.Array
) -> Iterator[Copy]:
    """The rows of some ids in files whose columns have these names."""
    for file in files:
        require_sound(storage, [file])
        with storage.open(file.path) as source:
            parquet = pq.ParquetFile(source, page_checksum_verification=True)
            rows = parquet.read(columns=list(names))
        rows = rows.select(list(names)).rename_columns(list(_COPY))
        yield from _copies(_in_micros(rows.filter(pc.is_in(rows.column(2), value_set=ids))))


def _copies(rows: pa.Table) -> Iterator[Copy]:
    for row in rows.to_pylist():
        position = Position(row["partition"], row["offset"])
        yield Copy(row["event_id"], position, row["event_time"], mended_by(row.get("headers")))


def _in_micros(rows: pa.Table) -> pa.Table:
    times = rows.column("event_time").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    return rows.set_column(rows.schema.get_field_index("event_time"), "event_time", times)


def _positions(rows: pa.Table) -> list[Position]:
    partitions, offsets = (rows.column(name).to_pylist() for name in _OF_SILVER[:2])
    return [Position(*each) for each in zip(partitions, offsets, strict=True)]
