"""The pairs of silver rows and results of one gold table, and which of them are late."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headgate.declaration.model import GoldTable
from headgate.flow.gold.assignment import Assignment
from headgate.lake.tables.frames import Projection


class Pairs:
    """The expressions are built once: building them for every batch costs more than a small
    batch."""

    def __init__(self, table: GoldTable, assignment: Assignment) -> None:
        self._where = F.expr(table.where) if table.where else None
        self._assignment = assignment
        clock = F.unix_micros("_clock")
        # Most rows are in order, and their ``_clock`` is null. The watermark never makes them late.
        self._late = F.when(F.col("_clock").isNotNull() & (clock >= assignment.late_from), "late")
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
