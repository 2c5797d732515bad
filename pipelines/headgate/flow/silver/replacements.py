"""Reads copies of rejected rows, and turns those that meet the rules into rows of silver.

In most steps there is nothing to do, and the log or one column of bronze is enough to know this.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from headgate.declaration.names import IDENTITY, ITEM, POSITION, SILVER_IDENTITY, SILVER_POSITION
from headgate.flow.silver.copies import Copy, Earlier, candidates, first_copies
from headgate.flow.silver.rejected import rows_among
from headgate.flow.silver.transform import REJECTED, SilverTransform
from headgate.lake.storage.files import Storage
from headgate.lake.tables.damage import read_sound, require_sound
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.live_files import files_of_batches, live_files, overlapping_files
from headgate.lake.tables.replay import (
    RecordPosition,
    corrected_record,
    positions_of,
    positions_table,
)
from headgate.lake.tables.table import Table

_COPY = (*POSITION, "event_id", "event_time")
_ROW = (*IDENTITY, "event_id", "event_time")
_OF_SILVER = (*SILVER_IDENTITY, "_event_id", "_event_time")

BronzeRows = Callable[[Sequence[DataFile]], DataFrame]


class Replacements:
    """Finds replacements for the ``rejected`` rows of one silver table. ``within`` is how far apart
    copies of an id may be, in microseconds; None if the declaration has no rule for duplicates.
    ``by_value`` means that only the bytes of a record decide whether it meets the rules."""

    def __init__(
        self,
        spark: SparkSession,
        bronze: Table,
        silver: Table,
        rejected: Table,
        within: int | None,
        *,
        by_value: bool,
    ) -> None:
        self._spark, self._within, self._by_value = spark, within, by_value
        self._bronze, self._silver, self._rejected = bronze, silver, rejected

    def of(
        self,
        transform: SilverTransform,
        rows_of: BronzeRows,
        files: Sequence[DataFile],
        kept: Sequence[DataFile],
        apart: Sequence[DataFile],
        *,
        replays: Collection[int],
    ) -> pa.Table:
        """The rows of silver that take the place of rejected ones, in a step over some ``files`` of
        bronze. ``kept`` and ``apart`` are the step's files of silver and of rejected rows,
        ``replays`` the batch ids of replays of refused records. Raises DamagedFileError or OSError
        if a file is damaged."""
        nothing = pa.table({})
        if not apart and not self._rejected.state.total.get("rejected"):
            return nothing
        duplicates = self._duplicates(files)
        found, rejected = self._candidates(duplicates, files, apart, transform.suite, replays)
        if not found:
            return nothing
        rows = self._conforming(rows_of(files), found, transform)
        good = list(_identities(rows))
        records = {record.position: record for record in found}
        items = (replace(records[position], item=item) for position, item in good)
        passed = list(candidates(items, rejected))
        taken = {(row.position, row.item) for row in first_copies(passed, self._kept(passed, kept))}
        return rows.filter(pa.array([each in taken for each in good], pa.bool_()))

    def _duplicates(self, files: Sequence[DataFile]) -> pa.Table:
        """The duplicates among some files of bronze. Rows of files with replayed copies have their
        ``headers``; in other rows the column is null."""
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
        self,
        duplicates: pa.Table,
        files: Sequence[DataFile],
        apart: Sequence[DataFile],
        suite: str,
        replays: Collection[int],
    ) -> tuple[list[Copy], Earlier]:
        """The duplicates of records with rejected rows that no replay has corrected yet, and these
        rows. Most producers send the same bytes again, and the same rules would reject these. So
        such duplicates are left out with ``by_value``, unless the files have replayed copies."""
        if not len(duplicates):
            return [], Earlier(None)
        copies = pc.any(pc.less(duplicates.column("partition"), 0)).as_py()
        ids = pc.unique(duplicates.column("event_id"))
        spans = self._spans(duplicates.column("event_time"))
        handle = self._rejected.handle
        # A replay may have changed the time of a record, so its copies need all files.
        near = overlapping_files(handle, "event_time", spans)
        files_before = live_files(handle) if copies else near
        before = [
            (file, rows)
            for file in files_before
            if (rows := list(_rows(self._rejected.storage, [file], _ROW, ids)))
        ]
        earlier = [row for _, rows in before for row in rows]
        earlier += _rows(self._silver.storage, apart, _OF_SILVER, ids)
        rejected = Earlier(self._within, earlier)
        found = _among(duplicates, rejected)
        # This reads the files of all replays, so only if there is a candidate.
        if found and (corrected := self._corrected_before(replays)):
            left = (row for row in earlier if (row.position, row.item) not in corrected)
            rejected = Earlier(self._within, left)
            found = _among(duplicates, rejected)
        if not found or copies or not self._by_value:
            return found, rejected
        values = self._values(rejected.positions, [file for file, _ in before], suite)
        values |= self._values({*rejected.positions, *(row.position for row in found)}, files)
        differing = [
            row
            for row in found
            if all(
                values.get(of.position) != values[row.position] for of in rejected.copies_of(row)
            )
        ]
        return differing, rejected

    def _values(
        self,
        positions: Collection[RecordPosition],
        files: Sequence[DataFile],
        suite: str | None = None,
    ) -> dict[RecordPosition, bytes]:
        """The bytes of the records at some positions, in files of bronze. With the digest
        ``suite``: in files of rejected rows, and only those that this suite has rejected."""
        storage = self._bronze.storage if suite is None else self._rejected.storage
        wanted = positions_table(positions)
        wanted = wanted.append_column("row", pa.arange(0, len(wanted)))
        names = [*wanted.column_names[:2], "value", *(["suite"] if suite else [])]
        return {
            RecordPosition(row["partition"], row["offset"]): row["value"]
            for file in files
            for part in rows_among(storage, file, wanted, names)
            for row in part.to_pylist()
            if row.get("suite") == suite and row["value"] is not None
        }

    def _corrected_before(self, replays: Collection[int]) -> set[tuple[RecordPosition, int]]:
        """The rejected rows of which earlier replays have brought a copy into the table, with any
        event time."""
        batches = {n for n in replays if n <= self._bronze.state.n}
        if not batches:
            return set()
        taken = defaultdict(list)
        for file in files_of_batches(self._silver.handle, batches):
            rows = read_sound(self._silver.storage, file, list(SILVER_IDENTITY))
            for position, item in _identities(rows):
                taken[position].append(item)
        columns = (*_COPY[:2], "headers")
        return {
            (corrects, item)
            for file in files_of_batches(self._bronze.handle, batches)
            for row in read_sound(self._bronze.storage, file, columns).to_pylist()
            for item in taken.get(RecordPosition(row["partition"], row["offset"]), ())
            if (corrects := corrected_record(row["headers"])) is not None
        }

    def _kept(self, passed: Sequence[Copy], kept: Sequence[DataFile]) -> Earlier:
        """The rows of the table that may be earlier copies of others. ``kept`` are the files of
        this step."""
        if self._within is None or not passed:
            return Earlier(self._within)
        spans = self._spans(pa.chunked_array([[row.time for row in passed]], pa.int64()))
        files = overlapping_files(self._silver.handle, "_event_time", spans)
        ids = pa.array({row.id for row in passed}, pa.string())
        rows = _rows(self._silver.storage, [*files, *kept], _OF_SILVER, ids)
        return Earlier(self._within, rows)

    def _spans(self, times: pa.ChunkedArray) -> list[tuple[int, int]]:
        """The range of event times that copies of rows with these ``times`` may have."""
        within = self._within or 0
        return [(pc.min(times).as_py() - within, pc.max(times).as_py() + within)]

    def _conforming(
        self, bronze: DataFrame, copies: Sequence[Copy], transform: SilverTransform
    ) -> pa.Table:
        """The rows of silver that some duplicates would become if they were not duplicates. Rows
        that a rule rejects, or that do not pass the table's ``where``, are left out."""
        wanted = positions_table(copy.position for copy in copies)
        known = F.broadcast(self._spark.createDataFrame(wanted))
        rows = bronze.join(known, wanted.column_names).withColumn("duplicate", F.lit(False))
        conformed = transform.conformed(rows, Observation())
        return conformed.where(~F.col(REJECTED)).drop(REJECTED).toArrow()


def _among(duplicates: pa.Table, rejected: Earlier) -> list[Copy]:
    """The ``candidates`` among some duplicates, which are whole records."""
    known = pa.array(sorted(rejected.ids), pa.string())
    ours = duplicates.filter(pc.is_in(duplicates.column("event_id"), value_set=known))
    return list(candidates(_copies(ours), rejected))


def _duplicates(parquet: pq.ParquetFile) -> pa.Table:
    rows = parquet.read(columns=[*_COPY, "duplicate", "reason"])
    headers = pa.chunked_array([pa.nulls(len(rows))])
    if pc.any(pc.less(rows.column("partition"), 0)).as_py():
        headers = parquet.read(columns=["headers"]).column(0)
    rows = _in_micros(rows).append_column("headers", headers)
    valid = pc.and_(rows.column("duplicate"), pc.is_null(rows.column("reason")))
    # A copy in a load replaces nothing: its place among the stream's batches depends on timing.
    valid = pc.and_(valid, pc.greater_equal(rows.column("offset"), 0))
    return rows.filter(valid).select([*_COPY, "headers"])


def _rows(
    storage: Storage, files: Iterable[DataFile], names: Sequence[str], ids: pa.Array
) -> Iterator[Copy]:
    """The rows with some ids, from files whose columns ``_ROW`` have these names."""
    for file in files:
        rows = read_sound(storage, file, names).select(list(names)).rename_columns(list(_ROW))
        yield from _copies(_in_micros(rows.filter(pc.is_in(rows.column("event_id"), ids))))


def _identities(rows: pa.Table) -> Iterator[tuple[RecordPosition, int]]:
    """The records of some rows of silver, and the places of the rows among those of a record."""
    items = rows.column(f"_{ITEM}").to_pylist()
    yield from zip(positions_of(rows, tuple(SILVER_POSITION)), items, strict=True)


def _copies(rows: pa.Table) -> Iterator[Copy]:
    for row in rows.to_pylist():
        position = RecordPosition(row["partition"], row["offset"])
        corrects = corrected_record(row.get("headers"))
        yield Copy(row["event_id"], position, row["event_time"], corrects, row.get(ITEM))


def _in_micros(rows: pa.Table) -> pa.Table:
    times = rows.column("event_time").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    return rows.set_column(rows.schema.get_field_index("event_time"), "event_time", times)
