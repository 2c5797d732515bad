"""Event-time windows of a row: [start, start + size) every ``every``, aligned to 1970 UTC."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.spec.model import GoldTable, Window
from headgate.tables.frames import micros


def with_windows(rows: DataFrame, window: Window) -> DataFrame:
    """Each row once for every window its event time lies in, with start and end."""
    size, every = micros(window.size), micros(window.every)
    time = F.unix_micros("_event_time")
    last = time - F.pmod(time, F.lit(every))
    if size == every:
        start = last
    else:
        start = F.explode(F.array(*(last - F.lit(k * every) for k in range(size // every))))
    started = rows.withColumn("_start", start)
    return started.select(
        "*",
        F.timestamp_micros("_start").alias("window_start"),
        F.timestamp_micros(F.col("_start") + F.lit(size)).alias("window_end"),
    ).drop("_start")


def lateness(table: GoldTable, closed_through: int | None) -> Column:
    """Null for a (row, window) pair that is folded, else why it is late: ``late`` if the clock
    had passed the window's end and the allowed lateness, ``closed`` if an operation had closed
    the window before."""
    limit = F.unix_micros("window_end") + F.lit(micros(table.allowed_lateness))
    # Most rows are in order and carry no clock: they can be late for nothing.
    reason = F.when(F.col("_clock").isNotNull() & (F.unix_micros("_clock") >= limit), "late")
    if closed_through is not None:
        reason = reason.when(F.unix_micros("window_end") <= F.lit(closed_through), "closed")
    return reason
