"""From a batch's thin columns and results to what sequencing needs: who counts, and why not."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.bronze.reasons import BEFORE_FUTURE, UNREADABLE, Reason
from headgate.bronze.sequencing import SEQUENCER_INPUT

KEY_COLUMNS = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("time", pa.int64()),
        ("seen_at", pa.int64()),
        ("hash_a", pa.int64()),
        ("hash_b", pa.int64()),
        ("content", pa.int64()),
        ("suspect", pa.bool_()),
        ("size", pa.int32()),
    ]
)
"""The columns of a parsed batch that Spark hands over. Times in microseconds since 1970 UTC,
``size`` the bytes of text that a suspect is judged by."""


def in_log_order(thin: pa.Table, results: pa.Table, future_after: int) -> pa.Table:
    """``SEQUENCER_INPUT`` of a batch, sorted by partition and offset.

    A future record keeps its place but loses its time: a broken clock must not move anyone's.
    """
    # A record without a position is a defect of the source: better no batch than a part of it.
    if lost := thin.column("offset").null_count:
        raise AssertionError(f"{lost} records have no offset")
    rows = _sorted(thin)
    judged = _sorted(results)
    suspects = np.flatnonzero(rows.column("suspect").to_numpy())
    if judged.num_rows != len(suspects):
        raise AssertionError(f"{len(suspects)} suspects, but {judged.num_rows} results")
    reason, reason_column, reason_detail, rescued = (
        _spread(judged.column(c), suspects, len(rows))
        for c in ("reason", "reason_column", "reason_detail", "rescued")
    )
    time = rows.column("time")
    unreadable = _among(reason, UNREADABLE)
    no_id = _among(reason, (*UNREADABLE, Reason.MISSING_ID))
    ahead = pc.greater(time, pc.add(rows.column("seen_at"), future_after))
    future = pc.and_(pc.fill_null(ahead, False), pc.invert(unreadable))
    early = _among(reason, BEFORE_FUTURE)
    is_future = pc.and_(future, pc.invert(early))
    nothing, nobody = pa.scalar(None, pa.int64()), pa.scalar(None, pa.string())
    columns = {
        "partition": rows.column("partition"),
        "offset": rows.column("offset"),
        "time": pc.if_else(pc.or_(future, unreadable), nothing, time),
        "hash_a": pc.if_else(no_id, nothing, rows.column("hash_a")),
        "hash_b": rows.column("hash_b"),
        "content": rows.column("content"),
        "reason": pc.if_else(is_future, Reason.FUTURE.value, reason),
        "reason_column": pc.if_else(is_future, nobody, reason_column),
        "reason_detail": pc.if_else(is_future, nobody, reason_detail),
        "rescued": rescued,
    }
    return pa.table([columns[f.name] for f in SEQUENCER_INPUT], schema=SEQUENCER_INPUT)


def _sorted(rows: pa.Table) -> pa.Table:
    rows = rows.combine_chunks()
    partition, offset = (rows.column(name).to_numpy() for name in ("partition", "offset"))
    step, along = np.diff(partition), np.diff(offset)
    # As files are read, they are in order: looking costs a hundredth of sorting.
    if bool(np.all((step > 0) | ((step == 0) & (along > 0)))):
        return rows
    return rows.sort_by([("partition", "ascending"), ("offset", "ascending")])


def _spread(values: pa.ChunkedArray, places: npt.NDArray[np.int64], length: int) -> pa.ChunkedArray:
    """``values`` at ``places`` of an array of ``length``, null everywhere else."""
    taken = np.zeros(length, np.int64)
    taken[places] = np.arange(len(places))
    elsewhere = np.ones(length, np.bool_)
    elsewhere[places] = False
    return values.take(pa.array(taken, mask=elsewhere))


def _among(reason: pa.ChunkedArray, reasons: tuple[Reason, ...]) -> pa.Array:
    wanted = pa.array([r.value for r in reasons])
    return pc.fill_null(pc.is_in(reason, value_set=wanted), False)
