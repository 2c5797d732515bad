"""How large the next batch may be: a plain function of the last one."""

from __future__ import annotations

from datetime import timedelta


def next_limit(
    limit: int, taken: int, took: timedelta, *, target: timedelta, lowest: int, highest: int
) -> int:
    """The next batch's limit, after a batch of ``taken`` records with the duration ``took``.

    After a slow batch: the records that would have fitted, but at least half. After a full batch
    well below the target: half as much again. Otherwise unchanged, so that sizes do not oscillate.
    """
    if took > target:
        fitting = int(taken * (target / took))
        return max(lowest, min(limit, max(fitting, limit // 2)))
    if took < target / 2 and taken >= limit:
        return min(highest, limit + limit // 2 + 1)
    return limit
