"""Running maxima of a time in log order: those of partitions, and the watermark of their source."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt

Micros = npt.NDArray[np.int64]
NEVER = np.iinfo(np.int64).min
"""In the place of a record's time: it has none."""


def clocks_of(
    partition: npt.NDArray[np.int32], time: Micros, clocks: Mapping[str, int], watermark: int | None
) -> tuple[Micros, dict[str, int]]:
    """For each record the greatest time before it in its partition, but at least the ``watermark``;
    and the greatest time of each partition after the batch."""
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


def watermark_of(
    clocks: Mapping[str, int], partitions: Collection[int], before: int | None
) -> int | None:
    """The smallest of the clocks of some partitions, but at least the watermark ``before``. A
    partition without a clock holds it back."""
    return lowest_of([clocks.get(str(number)) for number in partitions], before)


def lowest_of(clocks: Collection[int | None], before: int | None) -> int | None:
    """The smallest of some clocks, but at least the watermark ``before``. One that is not known
    holds it back."""
    known = [clock for clock in clocks if clock is not None]
    lowest = min(known) if known and len(known) == len(clocks) else None
    return max((c for c in (before, lowest) if c is not None), default=None)
