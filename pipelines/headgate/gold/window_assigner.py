"""Event-time windows of a row: [start, start + size) every ``every``, aligned to 1970 UTC."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.declaration.model import GoldTable, Window
from headgate.tables.frames import micros
from headgate.tables.projection import Projection


class WindowAssigner:
    """How the rows of a silver table pair with a gold table's windows, and which pairs are late.
    Its expressions are made once: building them anew costs more than a small batch's rows."""

    def __init__(self, table: GoldTable) -> None:
        self._where = F.expr(table.where) if table.where else None
        started = F.timestamp_micros("_start")
        ended = F.timestamp_micros(F.col("_start") + F.lit(micros(table.window.size)))
        self._start = Projection("*", _starts(table.window).alias("_start"))
        self._window = Projection("*", started.alias("window_start"), ended.alias("window_end"))
        self._end = F.unix_micros("window_end")
        self._limit = self._end + F.lit(micros(table.allowed_lateness))
        # Most rows are in order and carry no clock: they can be late for nothing.
        self._late = F.when(
            F.col("_clock").isNotNull() & (F.unix_micros("_clock") >= self._limit), "late"
        )
        self._lateness: dict[int | None, Projection] = {
            None: Projection("*", self._late.alias("_late"))
        }
        self.late_seconds = (F.unix_micros("_clock") - self._limit) / F.lit(1_000_000.0)

    def pairs(self, silver: DataFrame, closed_through: int | None) -> DataFrame:
        """Each row once for every window its event time lies in, with start and end.

        ``_late`` is null for a pair that is folded, else why it is late: ``late`` if the clock
        had passed the window's end and the allowed lateness, ``closed`` if an operation had
        closed the window before.
        """
        rows = silver if self._where is None else silver.where(self._where)
        return self._late_after(closed_through).of(self._window.of(self._start.of(rows)))

    def _late_after(self, closed_through: int | None) -> Projection:
        if closed_through not in self._lateness:
            late = self._late.when(self._end <= F.lit(closed_through), "closed")
            self._lateness = {closed_through: Projection("*", late.alias("_late"))}
        return self._lateness[closed_through]


def _starts(window: Window) -> Column:
    """The starts of the windows a row lies in, a row each, in microseconds."""
    size, every = micros(window.size), micros(window.every)
    time = F.unix_micros("_event_time")
    last = time - F.pmod(time, F.lit(every))
    if size == every:
        return last
    return F.explode(F.array(*(last - F.lit(k * every) for k in range(size // every))))
