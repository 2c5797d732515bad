"""The window of a row, by boundaries that were computed in Python.

Java has rules of time zones too, and Spark could truncate a time by them. But their version is that
of the machine's Java: it would have to be compared with that of tzdata, and a pipeline could not
run on a machine with another one. Spark's truncation also differs if the clocks go back to the date
before. To look a boundary up in an array needs neither, and compiles to a few additions.
"""

from __future__ import annotations

from bisect import bisect_right
from datetime import timedelta
from itertools import pairwise

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.declaration.names import TimeColumns
from headgate.flow.gold.operators.calendar.boundaries import Boundaries
from headgate.flow.gold.operators.calendar.zones import CYCLE
from headgate.flow.gold.pairs import Assignment
from headgate.lake.tables.frames import Projection

_SECOND = 1_000_000
_CYCLE = CYCLE * _SECOND
_SLOTS = 8_192
"""Into so many parts the time is divided that a few runs of windows begin in each."""
_NEVER = np.iinfo(np.int64).max


def assignment(windows: Boundaries, lateness: timedelta, times: TimeColumns) -> Assignment:
    steps = [Projection("*", *columns) for columns in _steps(windows, times.time)]

    def assign(rows: DataFrame) -> DataFrame:
        for step in steps:
            rows = step.of(rows)
        return rows

    return Assignment.until(assign, F.unix_micros("window_end"), lateness, times)


def _steps(windows: Boundaries, column: str) -> list[list[Column]]:
    """The columns that each step adds to the columns of the step before.

    The time in ``column`` is moved by whole cycles to ``_time``, where boundaries are listed.
    ``_run`` is the run of windows that contains it: it is ``_at_least`` the run at the begin of its
    slot of time, and is compared with the few runs that begin inside of the slot.
    """
    low, high = windows.low * _SECOND, windows.high * _SECOND
    width = -(-(windows.high - windows.low) // _SLOTS)
    slot_begins = range(windows.low, windows.low + (_SLOTS + 1) * width, width)
    first = [bisect_right(windows.starts, begin) - 1 for begin in slot_begins]
    inside = max(after - before for before, after in pairwise(first))
    starts, lengths = (np.array(each, np.int64) for each in (windows.starts, windows.lengths))
    runs = F.lit(np.append(starts * _SECOND, np.full(inside, _NEVER)))
    run_start, length = F.get(runs, F.col("_run")), F.get(F.lit(lengths * _SECOND), F.col("_run"))
    slot = F.expr(f"int((_time - {low}L) div {width * _SECOND}L)")
    later = (
        (F.col("_time") >= F.get(runs, F.col("_at_least") + F.lit(place + 1))).cast("int")
        for place in range(inside)
    )
    cycles = (
        f"case when _micros < {low}L then (_micros - {low - 1}L) div {_CYCLE}L - 1 "
        f"when _micros >= {high}L then (_micros - {high}L) div {_CYCLE}L + 1 else 0L end"
    )
    begin = F.col("_time") - F.pmod(F.col("_time") - run_start, length)
    return [
        [F.unix_micros(column).alias("_micros")],
        [F.expr(f"({cycles}) * {_CYCLE}L").alias("_moved")],
        [(F.col("_micros") - F.col("_moved")).alias("_time")],
        [F.get(F.lit(np.array(first, np.int32)), slot).alias("_at_least")],
        [sum(later, F.col("_at_least")).alias("_run")],
        [(begin + F.col("_moved")).alias("_begin"), length.alias("_length")],
        [
            F.timestamp_micros("_begin").alias("window_start"),
            F.timestamp_micros(F.col("_begin") + F.col("_length")).alias("window_end"),
        ],
    ]
