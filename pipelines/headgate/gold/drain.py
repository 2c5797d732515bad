"""The operation "close windows": make every open window of a gold table final, once."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from pyspark.sql import functions as F

from headgate.failpoints import failpoint
from headgate.gold.stage import GoldStage
from headgate.tables.data_file import FINAL, STATE
from headgate.tables.open_rows import open_rows
from headgate.tables.staging import stage
from headgate.tables.state import State, add_counts, commit_time


def drain(gold: GoldStage, operation: int, now: datetime) -> State:
    """Make the open rows final and remember up to which window end that was done.

    C does not move: a later row for such a window is late with the reason ``closed``. Repeating
    an operation that the table has committed already does nothing.
    """
    table = gold.gold
    held = table.refresh()
    if held.operation >= operation:
        return held
    opened = open_rows(table)
    at = commit_time(now)
    state = replace(held.held("operation", table.epoch), operation=operation, at=at)
    if not opened.live:
        return table.commit(state)
    rows = gold.rows(opened.files)
    last = rows.agg(F.max(F.unix_micros("window_end"))).first()
    closed = rows.drop(STATE).withColumn(FINAL, F.lit(True))
    staged = stage(table, state, closed, time_column="window_start")
    failpoint("operation.staged")
    ends = [end for end in (last[0] if last else None, held.closed_through) if end is not None]
    state = replace(
        state,
        closed_through=max(ends, default=None),
        changed_at=at,
        total=add_counts(held.total, {"final": sum(f.rows for f in staged)}),
    )
    return table.commit(state, add=staged, remove=opened.live)
