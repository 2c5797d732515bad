"""Computes when each record arrived, in log order: plain functions, without Spark.

A record arrives when it is seen (``seen_at``), but never before the record before it in its
partition, and never before the source's arrival watermark of the batch before. So a window of
arrival times is complete once the arrival watermark is at its end. Like a watermark at arrival, the
result depends on the log, and not on how it is split into batches.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headgate.flow.bronze.clocks import NEVER, Micros, clocks_of, watermark_of

_TIME = pa.timestamp("us", "UTC")
ARRIVAL_STAMPS = pa.schema([("row", pa.int64()), ("arrived", _TIME), ("arrival_clock", _TIME)])
"""``row`` is a row of the input, ``arrived`` is null for a record that arrived when it was seen.
``arrival_clock`` is the arrival watermark at which the record was read, if that is after its
arrival, which is possible only for history."""


@dataclass(frozen=True)
class Arrivals:
    """``stamps`` has ``ARRIVAL_STAMPS``, with a row for each record for which one of the columns is
    not null. ``clocks`` has the last arrival of each partition, ``watermark`` is the source's
    arrival watermark after the batch."""

    stamps: pa.Table
    clocks: Mapping[str, int]
    watermark: int | None

    def added_to(self, stamps: pa.Table) -> pa.Table:
        """Stamps of the same records, with the columns of these."""
        if not len(self.stamps):
            for field in ARRIVAL_STAMPS.remove(0):
                stamps = stamps.append_column(field, pa.nulls(len(stamps), field.type))
            return stamps
        return stamps.join(self.stamps, "row", join_type="full outer").sort_by("row")


def arrivals(
    ordered: pa.Table,
    clocks: Mapping[str, int],
    watermark: int | None,
    partitions: Collection[int],
) -> Arrivals:
    """The arrivals of a batch of the stream (``SEQUENCER_INPUT``, in log order). ``clocks`` and
    ``watermark`` are those of the previous bronze commit; ``partitions`` are the active ones."""
    seen = _seen(ordered)
    before, after = clocks_of(ordered.column("partition").to_numpy(), seen, clocks, watermark)
    stamps = _stamps(seen, np.maximum(before, seen), NEVER)
    return Arrivals(stamps, after, watermark_of(after, partitions, watermark))


def arrivals_of_history(ordered: pa.Table, watermark: int | None) -> Arrivals:
    """The arrivals of records of a load. History arrived when it was seen, whatever its place among
    the batches is: it may be late for results that are final."""
    seen = _seen(ordered)
    return Arrivals(_stamps(seen, seen, _or_never(watermark)), {}, watermark)


def arrivals_of_copies(ordered: pa.Table, watermark: int | None) -> Arrivals:
    """The arrivals of corrected copies: the source's arrival watermark at the place of their
    replay, which is that of the decision in each rebuild."""
    seen = _seen(ordered)
    arrived = seen if watermark is None else np.full(len(seen), watermark, np.int64)
    return Arrivals(_stamps(seen, arrived, NEVER), {}, watermark)


def _stamps(seen: Micros, arrived: Micros, clock: int) -> pa.Table:
    is_moved, is_behind = arrived != seen, arrived < clock
    rows = np.flatnonzero(is_moved | is_behind)
    clocks = np.full(len(rows), clock, np.int64)
    columns = [
        pa.array(rows),
        pa.array(arrived[rows], mask=~is_moved[rows]).cast(_TIME),
        pa.array(clocks, mask=~is_behind[rows]).cast(_TIME),
    ]
    return pa.table(columns, schema=ARRIVAL_STAMPS)


def _seen(ordered: pa.Table) -> Micros:
    seen: Micros = ordered.column("seen").fill_null(NEVER).to_numpy()
    return seen


def _or_never(watermark: int | None) -> int:
    return NEVER if watermark is None else watermark
