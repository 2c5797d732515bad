"""The interval of a row, and the sessions that some intervals form."""

from __future__ import annotations

from datetime import timedelta

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from headgate.declaration.names import TimeColumns
from headgate.flow.gold.pairs import Assignment
from headgate.lake.tables.frames import Projection, micros

BEGIN, END = "window_start", "window_end"


def assignment(gap: int, lateness: timedelta, times: TimeColumns) -> Assignment:
    """The pair of a row has the row's own interval. It is late if the watermark at arrival is
    beyond its time plus the allowed lateness: then no session that it could join is final."""
    slack = micros(lateness)
    time, begin = F.unix_micros(times.time), F.unix_micros(BEGIN)
    interval = Projection(
        "*",
        F.col(times.time).alias(BEGIN),
        F.timestamp_micros(time + F.lit(gap)).alias(END),
    )
    return Assignment(
        interval.of,
        end=F.unix_micros(END) + F.lit(1),
        late_from=begin + F.lit(slack + 1),
        closed_by=begin + F.lit(1),
        slack=slack,
        times=times,
    )


class WithSessions:
    """Finds the sessions of some intervals. ``_by`` is the key of an interval, ``_from`` and
    ``_to`` are its ends in microseconds. Intervals that only touch are in one session, as in Spark
    and Flink."""

    def __init__(self) -> None:
        in_order = Window.partitionBy("_by").orderBy("_from")
        before = F.max("_to").over(in_order.rowsBetween(Window.unboundedPreceding, -1))
        is_first = before.isNull() | (F.col("_from") > before)
        self._firsts = Projection("*", F.when(is_first, F.col("_from")).alias("_first"))
        so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
        begin = F.last("_first", ignorenulls=True).over(so_far)
        self._begins = Projection("*", begin.alias("_begin"))

    def of(self, intervals: DataFrame) -> DataFrame:
        """Adds ``_begin``, the begin of an interval's session."""
        return self._begins.of(self._firsts.of(intervals))


def within_session(column: Column) -> Column:
    """An aggregate over the intervals of a session, for each of them."""
    return column.over(Window.partitionBy("_by", "_begin"))
