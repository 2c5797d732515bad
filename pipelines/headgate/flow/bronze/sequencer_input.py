"""The columns of decoded records that sequencing needs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.declaration.model import Record
from headgate.flow.bronze.decoding.event_times import are_future
from headgate.flow.bronze.hashes import hashes
from headgate.flow.bronze.sequencing import SEQUENCER_INPUT


def sequencer_input(decoded: pa.Table, record: Record) -> pa.Table:
    """``SEQUENCER_INPUT`` of decoded records. A record with a time in the future keeps its position
    but gets no time, so it does not move the watermark. A record of a declaration without ids has
    no hash."""
    time = decoded.column("event_time")
    # Not by the reason: ``missing_id`` takes precedence over ``future``.
    is_future = are_future(time, decoded.column("seen_at"), record.future_after)
    hashed = hashes(decoded)
    none = pa.nulls(len(decoded), pa.int64())
    columns = {
        "partition": decoded.column("partition"),
        "offset": decoded.column("offset"),
        "time": pc.if_else(is_future, None, time).cast(pa.int64()),
        "hash_a": hashed.column("hash_a") if record.event_id else none,
        "hash_b": hashed.column("hash_b") if record.event_id else none,
        "content": hashed.column("content"),
        "conforms": pc.is_null(decoded.column("reason")),
        "size": pc.binary_length(decoded.column("value")).cast(pa.int64()),
    }
    return pa.table([columns[f.name] for f in SEQUENCER_INPUT], schema=SEQUENCER_INPUT)


def in_log_order(parts: Sequence[pa.Table]) -> tuple[pa.Table, npt.NDArray[np.int64]]:
    """The rows of some tables, sorted by partition and offset, and for each of them its index among
    the given rows."""
    rows = pa.concat_tables([SEQUENCER_INPUT.empty_table(), *parts]).combine_chunks()
    # A record without a position is a defect of the source. The batch fails as a whole.
    if lost := rows.column("offset").null_count:
        raise AssertionError(f"{lost} records have no offset")
    partition, offset = (rows.column(name).to_numpy() for name in ("partition", "offset"))
    step, along = np.diff(partition), np.diff(offset)
    # Rows read from files are usually sorted. This check costs a hundredth of a sort.
    if bool(np.all((step > 0) | ((step == 0) & (along > 0)))):
        return rows, np.arange(len(rows))
    order = np.lexsort((offset, partition))
    return rows.take(pa.array(order)), order
