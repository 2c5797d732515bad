"""The two stamps of a record, decided in log order: its clock and whether it is a duplicate.

Plain functions over Arrow columns, without Spark: what is early, late or repeated depends on the
log alone, never on how it was cut into batches.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headgate.bronze.dedup_index import DedupIndex, Found

Micros = npt.NDArray[np.int64]
NEVER = np.iinfo(np.int64).min

SEQUENCER_INPUT = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("time", pa.int64()),
        ("hash_a", pa.int64()),
        ("hash_b", pa.int64()),
        ("content", pa.int64()),
        ("reason", pa.string()),
        ("reason_column", pa.string()),
        ("reason_detail", pa.string()),
        ("rescued", pa.string()),
    ]
)
"""What decides a record's stamps (see ``fitness``). ``time`` is the event time in microseconds,
null without one or if it is future; the hashes are null without an id."""

STAMPS = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("clock", pa.timestamp("us", "UTC")),
        ("duplicate", pa.bool_()),
        ("differing", pa.bool_()),
        ("reason", pa.string()),
        ("reason_column", pa.string()),
        ("reason_detail", pa.string()),
        ("rescued", pa.string()),
    ]
)


@dataclass(frozen=True)
class Sequenced:
    """``stamps`` has a row for each record that is not plain: behind its clock, a duplicate, or
    with a reason; ``clocks`` are the partitions' clocks and ``watermark`` the watermark after
    the batch."""

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
    seen: DedupIndex | None,
) -> Sequenced:
    """Stamp a batch (``SEQUENCER_INPUT``, in log order).

    ``clocks`` and ``watermark`` are those of the previous bronze commit. ``partitions`` are those
    that the watermark waits for: the smallest of their clocks is the new one, and one that
    has none yet holds it.
    """
    partition = ordered.column("partition").to_numpy()
    time = ordered.column("time").fill_null(NEVER).to_numpy()
    before, after = _clocks(partition, time, clocks, watermark)
    found = seen.find(ordered) if seen else _none(len(time))
    duplicate, differing = found.duplicate, found.differing
    # Stored only where it is ahead of the record's own time: most records are in order.
    behind = (before > time) & (time != NEVER)
    told = ordered.column("reason").is_valid().to_numpy()
    told |= ordered.column("rescued").is_valid().to_numpy()
    marked = np.flatnonzero(behind | duplicate | differing | told)
    clock = pa.array(before[marked], mask=~behind[marked]).cast(pa.timestamp("us", "UTC"))
    stamps = pa.table(
        [
            ordered.column("partition").take(marked),
            ordered.column("offset").take(marked),
            clock,
            pa.array(duplicate[marked]),
            pa.array(differing[marked]),
            *(ordered.column(c).take(marked) for c in STAMPS.names[5:]),
        ],
        schema=STAMPS,
    )
    waited_for = [after.get(str(number)) for number in partitions]
    known = [clock for clock in waited_for if clock is not None]
    lowest = min(known) if known and len(known) == len(waited_for) else None
    return Sequenced(
        stamps,
        after,
        _later(watermark, lowest),
        int(duplicate.sum()),
        int(differing.sum()),
        found.corrected,
    )


def _clocks(
    partition: npt.NDArray[np.int32], time: Micros, clocks: Mapping[str, int], watermark: int | None
) -> tuple[Micros, dict[str, int]]:
    """Each record's clock before it (running maximum per partition) and the clocks afterwards."""
    before = np.full(len(time), NEVER, np.int64)
    after = dict(clocks)
    for number in np.unique(partition):
        here = np.flatnonzero(partition == number)
        start = clocks.get(str(number), NEVER)
        running = np.maximum.accumulate(np.concatenate([[start], time[here]]))
        before[here] = running[:-1] if watermark is None else np.maximum(running[:-1], watermark)
        if running[-1] != NEVER:
            after[str(number)] = int(running[-1])
    return before, after


def _later(watermark: int | None, lowest: int | None) -> int | None:
    """The watermark never falls."""
    known = [c for c in (watermark, lowest) if c is not None]
    return max(known, default=None)


def _none(rows: int) -> Found:
    return Found(np.zeros(rows, np.bool_), np.zeros(rows, np.bool_))
