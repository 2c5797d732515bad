"""Computes two columns of each record in log order: its watermark at arrival, and whether it is a
duplicate.

These are plain functions over Arrow columns, without Spark. The result depends on the log alone,
not on how the log is split into batches.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headgate.declaration.model import Record
from headgate.flow.bronze.clocks import NEVER, Micros, clocks_of, watermark_of
from headgate.flow.bronze.decoding.event_times import are_future
from headgate.flow.bronze.dedup_index import DedupIndex, DuplicateFlags, id_hashes
from headgate.flow.bronze.id_index import Flags

SEQUENCER_INPUT = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("time", pa.int64()),
        ("seen", pa.int64()),
        ("hash_a", pa.int64()),
        ("hash_b", pa.int64()),
        ("content", pa.int64()),
        ("conforms", pa.bool_()),
        ("size", pa.int64()),
    ]
)
"""The input of ``sequence`` (computed by ``sequencer_input``). ``time`` is the event time in
microseconds, null if there is none or it is in the future; ``seen`` is ``seen_at`` in
microseconds; the hashes are null without an id;
``conforms`` says whether the record is valid, regardless of other records; ``size`` is the number
of bytes of its value, null without a value."""

STAMPS = pa.schema(
    [
        ("row", pa.int64()),
        ("clock", pa.timestamp("us", "UTC")),
        ("duplicate", pa.bool_()),
        ("differing", pa.bool_()),
    ]
)
"""``row`` is a row of the input."""


@dataclass(frozen=True)
class Sequenced:
    """``stamps`` has a row for each record that is out of order or a duplicate. ``clocks`` are the
    partitions' watermarks and ``watermark`` is the source's watermark after the batch."""

    stamps: pa.Table
    clocks: Mapping[str, int]
    watermark: int | None
    duplicates: int
    differing: int
    corrected: int


def sequence(
    ordered: pa.Table,
    clocks: Mapping[str, int],
    watermark: int | None,
    partitions: Collection[int],
    dedup_index: DedupIndex | None,
) -> Sequenced:
    """Sequence a batch (``SEQUENCER_INPUT``, in log order).

    ``clocks`` and ``watermark`` are those of the previous bronze commit. ``partitions`` are the
    active partitions: the smallest of their watermarks is the source's new watermark. A partition
    without a watermark holds it back.
    """
    partition = ordered.column("partition").to_numpy()
    time = ordered.column("time").fill_null(NEVER).to_numpy()
    before, after = clocks_of(partition, time, clocks, watermark)
    found = dedup_index.find(ordered) if dedup_index else _none(len(time))
    stamps = _stamps(time, before, found.duplicate, found.differing)
    return Sequenced(
        stamps,
        after,
        watermark_of(after, partitions, watermark),
        int(found.duplicate.sum()),
        int(found.differing.sum()),
        found.corrected,
    )


def sequence_beside(
    ordered: pa.Table,
    watermark: int | None,
    dedup_index: DedupIndex | None,
    was_valid: Flags | None = None,
) -> Sequenced:
    """Sequence records that the source did not send in this order: a batch of history, or, with
    ``was_valid``, the corrected copies of a replay, in the order of the records that they correct.

    Their watermark at arrival is the source's ``watermark``; they advance no watermark. So no
    record of a load makes another one late: an archive is in the order of its files' names, and its
    windows are complete only when all of it was read.

    A copy of a valid record (``was_valid``) is a duplicate of it; silver takes the copy if a rule
    has rejected that record. Copies differ on purpose, so none goes to quarantine because it
    differs.
    """
    time = ordered.column("time").fill_null(NEVER).to_numpy()
    before = np.full(len(time), NEVER if watermark is None else watermark, np.int64)
    found = dedup_index.find(ordered) if dedup_index else _none(len(time))
    duplicate, differing = found.duplicate, found.differing
    if was_valid is not None:
        duplicate, differing = was_valid | duplicate | differing, np.zeros_like(differing)
    stamps = _stamps(time, before, duplicate, differing)
    counts = int(duplicate.sum()), int(differing.sum()), found.corrected
    return Sequenced(stamps, {}, watermark, *counts)


def _stamps(time: Micros, before: Micros, duplicate: Flags, differing: Flags) -> pa.Table:
    # A clock is stored only if it is after the record's own time. Most records are in order.
    behind = (before > time) & (time != NEVER)
    stored = np.flatnonzero(behind | duplicate | differing)
    clock = pa.array(before[stored], mask=~behind[stored]).cast(pa.timestamp("us", "UTC"))
    columns = [pa.array(stored), clock, pa.array(duplicate[stored]), pa.array(differing[stored])]
    return pa.table(columns, schema=STAMPS)


def _none(rows: int) -> DuplicateFlags:
    return DuplicateFlags(np.zeros(rows, np.bool_), np.zeros(rows, np.bool_))


def sequencer_input(decoded: pa.Table, record: Record) -> pa.Table:
    """``SEQUENCER_INPUT`` of decoded records. A record with a time in the future keeps its position
    but gets no time, so it does not move the watermark. A record of a declaration without ids has
    no hash."""
    time = decoded.column("event_time")
    # Not by the reason: ``missing_id`` takes precedence over ``future``.
    is_future = are_future(time, decoded.column("seen_at"), record.future_after)
    hashed = id_hashes(decoded)
    none = pa.nulls(len(decoded), pa.int64())
    columns = {
        "partition": decoded.column("partition"),
        "offset": decoded.column("offset"),
        "time": pc.if_else(is_future, None, time).cast(pa.int64()),
        "seen": decoded.column("seen_at").cast(pa.int64()),
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
    # A record without a position or an arrival is a defect of the source. The batch fails as a
    # whole.
    for name in ("offset", "seen"):
        if lost := rows.column(name).null_count:
            raise AssertionError(f"{lost} records have no {name}")
    partition, offset = (rows.column(name).to_numpy() for name in ("partition", "offset"))
    step, along = np.diff(partition), np.diff(offset)
    # Rows read from files are usually sorted. This check costs a hundredth of a sort.
    if bool(np.all((step > 0) | ((step == 0) & (along > 0)))):
        return rows, np.arange(len(rows))
    order = np.lexsort((offset, partition))
    return rows.take(pa.array(order)), order


def counts_of(ordered: pa.Table, sequenced: Sequenced, record: Record) -> dict[str, int]:
    """The counts of a batch (``SEQUENCER_INPUT``) that was sequenced.

    The bytes of valid records are ``read_bytes`` less those of duplicates and quarantined records.
    """
    stamps = sequenced.stamps
    duplicate = _flagged(stamps, "duplicate", ordered.num_rows)
    invalid = ~ordered.column("conforms").to_numpy()
    if record.quarantines_differing:
        invalid |= _flagged(stamps, "differing", ordered.num_rows)
    size = pc.fill_null(ordered.column("size"), 0).to_numpy()
    return {
        "read": ordered.num_rows,
        "duplicate": sequenced.duplicates,
        "differing": sequenced.differing,
        "corrected": sequenced.corrected,
        "read_bytes": int(size.sum()),
        "duplicate_bytes": int(size[duplicate].sum()),
        "quarantined_bytes": int(size[invalid & ~duplicate].sum()),
    }


def _flagged(stamps: pa.Table, name: str, rows: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """A flag of ``STAMPS`` for each row of the batch; false for a row without stamps."""
    flags = np.zeros(rows, np.bool_)
    flags[stamps.column("row").to_numpy()] = stamps.column(name).to_numpy()
    return flags
