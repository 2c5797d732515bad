"""The pairs of silver rows and results of one gold table: how an operator assigns rows to results,
and which pairs are late.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.declaration.model import GoldTable
from headgate.declaration.names import TIMES, TimeColumns
from headgate.lake.tables.frames import Projection, micros


@dataclass(frozen=True)
class Assignment:
    """``assign`` returns each row once for each result that it belongs to, with the columns of the
    result. The results of a row depend only on the row.

    ``end``, ``late_from`` and ``closed_by`` are times in microseconds since 1970 UTC. ``end`` is an
    expression over the columns of a result: the result is final once the watermark minus the
    allowed lateness reaches it. The others are expressions over a pair. A pair is late if the row's
    watermark at arrival is at or after ``late_from``. It is closed if a drain has made results up
    to ``closed_by`` final. No pair may be folded into a final result: ``late_from`` is at most
    ``end`` plus the allowed lateness. ``late_from`` is later than the row's time by more than
    ``slack`` microseconds. ``times`` are the columns of a row's time and watermark at arrival.
    """

    assign: Callable[[DataFrame], DataFrame]
    end: Column
    late_from: Column
    closed_by: Column
    slack: int = 0
    times: TimeColumns = TIMES["event"]

    @staticmethod
    def until(
        assign: Callable[[DataFrame], DataFrame],
        end: Column,
        lateness: timedelta,
        times: TimeColumns,
    ) -> Assignment:
        """A pair is late if the watermark at arrival is at or after the end of its result plus the
        allowed lateness."""
        slack = micros(lateness)
        late_from = end + F.lit(slack)
        return Assignment(assign, end, late_from=late_from, closed_by=end, slack=slack, times=times)


class Pairs:
    """The expressions are built once: building them for every batch costs more than a small
    batch."""

    def __init__(self, table: GoldTable, assignment: Assignment) -> None:
        self._where = F.expr(table.where) if table.where else None
        self._assignment = assignment
        met = assignment.times.clock
        clock = F.unix_micros(met)
        # Most rows are in order, and their ``met`` is null. The watermark never makes them late.
        self._late = F.when(F.col(met).isNotNull() & (clock >= assignment.late_from), "late")
        self._lateness: dict[int | None, Projection] = {
            None: Projection("*", self._late.alias("_late"))
        }
        self.late_seconds = (clock - assignment.late_from) / F.lit(1_000_000.0)

    def of(self, silver: DataFrame, closed_through: int | None) -> DataFrame:
        """Each row once for every result it belongs to, with the columns of the result.

        ``_late`` is null for a pair that is folded. Otherwise it is ``late`` if the watermark at
        arrival was at or after ``late_from``, or ``closed`` if a drain had made the result final
        before.
        """
        return self._late_after(closed_through).of(self.assigned(silver))

    def assigned(self, silver: DataFrame) -> DataFrame:
        """The pairs of ``of``, without the column ``_late``."""
        rows = silver if self._where is None else silver.where(self._where)
        return self._assignment.assign(rows)

    def _late_after(self, closed_through: int | None) -> Projection:
        if closed_through not in self._lateness:
            is_closed = self._assignment.closed_by <= F.lit(closed_through)
            late = self._late.when(is_closed, "closed")
            self._lateness = {closed_through: Projection("*", late.alias("_late"))}
        return self._lateness[closed_through]
