"""Reads earlier ids from bronze's files, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.flow.bronze.dedup_index import DEDUP_ROWS, Span
from headgate.flow.bronze.hashes import hashes
from headgate.flow.bronze.id_index import Ints
from headgate.flow.bronze.reasons import Reason
from headgate.lake.storage.files import Storage
from headgate.lake.tables.damage import sound_batches
from headgate.lake.tables.data_file import DataFile

_COLUMNS = ["partition", "event_time", "event_id", "value", "reason"]


def dedup_rows(storage: Storage, files: Iterable[DataFile], spans: Sequence[Span]) -> pa.Table:
    """``DEDUP_ROWS`` of some files whose event times lie in ``spans``, which are disjoint and rise.
    A differing duplicate counts as valid. Raises DamagedFileError."""
    firsts, lasts = np.array(spans, np.int64).reshape(-1, 2).T
    found = [DEDUP_ROWS.empty_table()]
    for file in files:
        for batch in sound_batches(storage, file, _COLUMNS):
            rows = pa.Table.from_batches([batch])
            found.append(_dedup_rows(rows.filter(_is_wanted(rows, firsts, lasts))))
    return pa.concat_tables(found)


def _is_wanted(rows: pa.Table, firsts: Ints, lasts: Ints) -> pa.ChunkedArray:
    """Searches the sorted ends: a batch may need thousands of spans, and a file has many rows."""
    time = rows.column("event_time").cast(pa.int64())
    at = pc.fill_null(time, 0).to_numpy()
    # Within a span, one more has begun than has ended.
    within = np.searchsorted(firsts, at, "right") > np.searchsorted(lasts, at, "left")
    # Each record with an id and a time in the future has this reason.
    is_future = pc.equal(rows.column("reason"), Reason.FUTURE.value)
    counts = pc.invert(pc.fill_null(is_future, False))
    known = pc.and_(pc.is_valid(time), pc.is_valid(rows.column("event_id")))
    return pc.and_(pc.and_(pa.array(within), counts), known)


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
