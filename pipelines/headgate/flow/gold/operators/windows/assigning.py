"""The windows of a row: [start, start + size) every ``every``, at ``offset`` since 1970 UTC."""

from __future__ import annotations

from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.declaration.names import TimeColumns
from headgate.flow.gold.operators.windows import Windows
from headgate.flow.gold.pairs import Assignment
from headgate.lake.tables.frames import Projection, micros


def assignment(windows: Windows, lateness: timedelta, times: TimeColumns) -> Assignment:
    size = F.lit(micros(windows.size))
    start = Projection("*", _starts(windows, times.time).alias("_start"))
    window = Projection(
        "*",
        F.timestamp_micros("_start").alias("window_start"),
        F.timestamp_micros(F.col("_start") + size).alias("window_end"),
    )

    def assign(rows: DataFrame) -> DataFrame:
        return window.of(start.of(rows))

    return Assignment.until(assign, F.unix_micros("window_end"), lateness, times)


def _starts(windows: Windows, column: str) -> Column:
    """The starts of the windows that contain a row, in microseconds: one row for each window."""
    size, every = micros(windows.size), micros(windows.every)
    time = F.unix_micros(column)
    last = time - F.pmod(time - F.lit(micros(windows.offset)), F.lit(every))
    if size == every:
        return last
    return F.explode(F.array(*(last - F.lit(k * every) for k in range(size // every))))
