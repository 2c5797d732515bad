"""Which sessions a correction may change: those that meet, with the new rows in between."""

from __future__ import annotations

from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.declaration.model import GoldTable
from headgate.flow.gold.affected import AffectedResults, RowsWithin
from headgate.flow.gold.aggregator import Aggregator, key_of_pair, key_of_row
from headgate.flow.gold.operators.session.sessions import BEGIN, END, WithSessions, within_session
from headgate.lake.tables.spans import Span, united


class AffectedSessions(AffectedResults):
    """An affected frame has ``_by`` and ``_session``, the first and the last microsecond of each
    session that is affected, as it will be: sessions of the table that it joins lie inside."""

    changes_open_rows: ClassVar[bool] = True

    def __init__(self, table: GoldTable, aggregator: Aggregator, end: Column) -> None:
        super().__init__(table, aggregator, end)
        self._with_sessions = WithSessions()
        ends = F.unix_micros(BEGIN).alias("_from"), F.unix_micros(END).alias("_to")
        self._of_pair = [key_of_pair(table).alias("_by"), *ends]
        self._of_row = [key_of_row(table).alias("_by"), *ends]

    def of(self, pairs: DataFrame, rows: RowsWithin) -> DataFrame:
        new = pairs.select(*self._of_pair)
        near = rows(_near(new)).select(*self._of_row)
        near = near.join(new.select("_by").distinct(), "_by", "left_semi")
        both = new.withColumn("_is_new", F.lit(True)).unionByName(
            near.withColumn("_is_new", F.lit(False))
        )
        sessions = self._with_sessions.of(both).groupBy("_by", "_begin")
        found = sessions.agg(F.max("_to").alias("_end"), F.bool_or("_is_new").alias("_is_new"))
        session = F.struct("_begin", "_end").alias("_session")
        return found.where("_is_new").select("_by", session)

    def spans(self, affected: DataFrame) -> list[Span]:
        return united((first, last) for first, last in affected.select("_session.*").collect())

    def pairs(self, pairs: DataFrame, affected: DataFrame) -> DataFrame:
        return _inside(pairs.select("*", *self._of_pair), affected)

    def rows(self, rows: DataFrame, affected: DataFrame) -> DataFrame:
        return _inside(rows.select("*", *self._of_row), affected)

    def others(self, rows: DataFrame, affected: DataFrame) -> DataFrame:
        return _inside(rows.select("*", *self._of_row), affected, "left_anti")

    def of_rows(self, affected: DataFrame, rows: DataFrame) -> DataFrame:
        theirs = rows.select(*self._of_row).alias("theirs")
        session, begin = F.col("mine._session"), F.col("theirs._from")
        is_inside = F.col("mine._by").eqNullSafe(F.col("theirs._by"))
        is_inside &= begin.between(session["_begin"], session["_end"])
        return affected.alias("mine").join(theirs, is_inside, "left_semi")

    def inside(
        self, rows: DataFrame, computed: DataFrame, span: Span, *, only_final: bool
    ) -> tuple[DataFrame, ...]:
        """A row is left out if its session meets one that is not inside, of the other side, too: a
        patch that replaced only one of them would leave sessions that overlap."""
        first, last = span
        sides = [
            each.select("*", *self._of_row).withColumn("_side", F.lit(side))
            for side, each in enumerate((rows, computed))
        ]
        is_inside = (F.col("_from") >= first) & (F.col("_to") <= last + 1)
        if only_final:
            is_inside &= F.col("final")
        both = self._with_sessions.of(sides[0].unionByName(sides[1]))
        found = both.withColumn("_inside", within_session(F.bool_and(is_inside))).where("_inside")
        kept = [found.where(F.col("_side") == side).select(*rows.columns) for side in (0, 1)]
        return tuple(kept)


def _near(intervals: DataFrame) -> list[Span]:
    """Spans that contain some intervals: few, even of many."""
    length = F.greatest(F.col("_to") - F.col("_from"), F.lit(1))
    place = F.floor(F.col("_from") / length)
    found = intervals.select(place * length, (place + 2) * length).distinct().collect()
    return united((int(first), int(last)) for first, last in found)


def _inside(rows: DataFrame, affected: DataFrame, how: str = "left_semi") -> DataFrame:
    """Those of some rows whose intervals lie in affected sessions; with ``left_anti``, the
    others."""
    mine, theirs = rows.alias("mine"), affected.alias("theirs")
    is_inside = F.col("mine._by").eqNullSafe(F.col("theirs._by")) & F.col("mine._from").between(
        F.col("theirs._session._begin"), F.col("theirs._session._end")
    )
    return mine.join(theirs, is_inside, how).drop("_by", "_from", "_to")
