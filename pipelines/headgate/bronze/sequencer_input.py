"""Combines a batch's key columns and validation results into the input of sequencing."""

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
        ("needs_validation", pa.bool_()),
        ("size", pa.int32()),
    ]
)
"""The columns of a parsed batch that the driver collects. Times are microseconds since 1970 UTC;
``size`` is the length in bytes of the text to validate."""


def sequencer_input(keys: pa.Table, results: pa.Table, future_after: int) -> pa.Table:
    """``SEQUENCER_INPUT`` of a batch, sorted by partition and offset.

    ``keys`` has ``KEY_COLUMNS``; ``results`` has a row for each record that needs validation.
    A future record keeps its position but gets no time, so it does not move the watermark.
    """
    # A record without a position is a defect of the source. The batch fails as a whole.
    if lost := keys.column("offset").null_count:
        raise AssertionError(f"{lost} records have no offset")
    rows = _sorted(keys)
    validated = _sorted(results)
    flagged = np.flatnonzero(rows.column("needs_validation").to_numpy())
    if validated.num_rows != len(flagged):
        raise AssertionError(f"{len(flagged)} records to validate, {validated.num_rows} results")
    reason, reason_column, reason_detail, rescued = (
        _spread(validated.column(c), flagged, len(rows))
        for c in ("reason", "reason_column", "reason_detail", "rescued")
    )
    time = rows.column("time")
    unreadable = _among(reason, UNREADABLE)
    no_id = _among(reason, (*UNREADABLE, Reason.MISSING_ID))
    ahead = pc.greater(time, pc.add(rows.column("seen_at"), future_after))
    future = pc.and_(pc.fill_null(ahead, False), pc.invert(unreadable))
    early = _among(reason, BEFORE_FUTURE)
    is_future = pc.and_(future, pc.invert(early))
    no_number, no_text = pa.scalar(None, pa.int64()), pa.scalar(None, pa.string())
    columns = {
        "partition": rows.column("partition"),
        "offset": rows.column("offset"),
        "time": pc.if_else(pc.or_(future, unreadable), no_number, time),
        "hash_a": pc.if_else(no_id, no_number, rows.column("hash_a")),
        "hash_b": rows.column("hash_b"),
        "content": rows.column("content"),
        "reason": pc.if_else(is_future, Reason.FUTURE.value, reason),
        "reason_column": pc.if_else(is_future, no_text, reason_column),
        "reason_detail": pc.if_else(is_future, no_text, reason_detail),
        "rescued": rescued,
    }
    return pa.table([columns[f.name] for f in SEQUENCER_INPUT], schema=SEQUENCER_INPUT)


def _sorted(rows: pa.Table) -> pa.Table:
    rows = rows.combine_chunks()
    partition, offset = (rows.column(name).to_numpy() for name in ("partition", "offset"))
    step, along = np.diff(partition), np.diff(offset)
    # Rows read from files are usually sorted. This check costs a hundredth of a sort.
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
