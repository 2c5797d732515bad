"""Reads earlier ids from bronze's files, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from headgate.bronze.dedup_index import DEDUP_ROWS, Span
from headgate.bronze.hashes import hashes
from headgate.bronze.reasons import Reason
from headgate.storage.files import Storage
from headgate.tables.damage import sound_batches
from headgate.tables.data_file import DataFile

_COLUMNS = ["partition", "event_time", "event_id", "value", "reason"]


def dedup_rows(storage: Storage, files: Iterable[DataFile], spans: Sequence[Span]) -> pa.Table:
    """``DEDUP_ROWS`` of some files whose event times lie in ``spans``. A differing duplicate counts
    as valid. Raises DamagedFileError."""
    found = [DEDUP_ROWS.empty_table()]
    for file in files:
        for batch in sound_batches(storage, file, _COLUMNS):
            rows = pa.Table.from_batches([batch])
            found.append(_dedup_rows(rows.filter(_is_wanted(rows, spans))))
    return pa.concat_tables(found)


def _is_wanted(rows: pa.Table, spans: Sequence[Span]) -> pa.ChunkedArray:
    time = rows.column("event_time").cast(pa.int64())
    within = pa.scalar(False)
    for first, last in spans:
        within = pc.or_(within, pc.and_(pc.greater_equal(time, first), pc.less_equal(time, last)))
    # Each record with an id and a time in the future has this reason.
    is_future = pc.equal(rows.column("reason"), Reason.FUTURE.value)
    counts = pc.invert(pc.fill_null(is_future, False))
    return pc.and_(pc.and_(within, counts), pc.is_valid(rows.column("event_id")))


def _dedup_rows(rows: pa.Table) -> pa.Table:
    partition, hashed = rows.column("partition"), hashes(rows)
    # A copy belongs to the log of the record that it corrects.
    log = pc.if_else(pc.less(partition, 0), pc.bit_wise_not(partition), partition)
    reason = rows.column("reason")
    differing = pc.fill_null(pc.equal(reason, Reason.DIFFERING_DUPLICATE.value), False)
    columns = {
        "partition": log,
        "time": rows.column("event_time").cast(pa.int64()),
        **{name: hashed.column(name) for name in hashed.column_names},
        "conforms": pc.or_(pc.is_null(reason), differing),
    }
    return pa.table([columns[f.name] for f in DEDUP_ROWS], schema=DEDUP_ROWS)
