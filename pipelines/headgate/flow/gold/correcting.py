"""Brings computed rows of some affected results into a gold table: final rows and open ones."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.declaration.contracts.operator import key_of
from headgate.flow.gold.fold import GoldFold
from headgate.flow.gold.schema import (
    compared_columns,
    declared_rows,
    gold_type,
    rows_of_both,
    time_column,
)
from headgate.flow.operations.patch import (
    RowComparison,
    final_rows_within,
    patched,
    with_open_rows,
)
from headgate.flow.operations.stage_table import Change, StageTable
from headgate.lake.tables.data_file import FINAL, STATE
from headgate.lake.tables.live_files import overlapping_files
from headgate.lake.tables.open_rows import open_rows
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.spans import EVERYTHING, Span, united
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table


class Correction:
    """How the rows of a gold table are corrected."""

    def __init__(self, fold: GoldFold, gold: Table) -> None:
        declared = fold.declared
        self._affected, self._gold = fold.affected, gold
        self._time_column = time_column(declared)
        self._rows = declared_rows(fold.spark, gold, declared)
        compared = key_of(declared), compared_columns(declared), gold_type(declared)
        self.comparison = RowComparison(*compared)

    def rows_within(self, spans: Sequence[Span]) -> DataFrame:
        """The rows of the table (``RowsWithin``). Its files have bounds of begins alone."""
        longest = GoldPayload.of(self._gold.state).longest
        begins = united((first - longest, last) for first, last in spans)
        found = overlapping_files(self._gold.handle, self._time_column, begins)
        return rows_of_both(self._rows, found)

    def final(
        self,
        place: StageTable,
        state: State,
        affected: DataFrame,
        spans: Sequence[Span],
        computed: DataFrame,
        pairs: int | None,
    ) -> Change:
        """The commit after which the table has the final rows among ``computed`` for the affected
        results, whose times are ``spans``. ``pairs`` as in ``patched``."""
        _, old = final_rows_within(place, spans)
        final = computed.where(FINAL).drop(STATE)
        compared = self.comparison.of(self._affected.rows(old, affected), final)
        return patched(place, state, self.comparison.patch(compared), spans, pairs)

    def both(
        self,
        place: StageTable,
        state: State,
        affected: DataFrame,
        spans: Sequence[Span],
        computed: DataFrame,
        pairs: int | None,
        through: int | None = None,
    ) -> Change:
        """As ``final``, and the open rows of the affected results are those of ``computed``. All
        other open rows that end at or before ``through`` become final."""
        opened = open_rows(self._gold)
        held = self._rows.of(opened.files)
        replaced, kept = (
            self._affected.rows(held, affected),
            self._affected.others(held, affected),
        )
        still_open = computed.where(~F.col(FINAL))
        if pairs is not None:
            # Pairs of final rows that are a part of an open one now leave the final rows.
            pairs -= _counted(still_open, place) - _counted(replaced, place)
        final, is_due = computed.where(FINAL), self._is_due(place, through)
        due = kept.where(is_due).drop(FINAL).withColumn(FINAL, F.lit(True))
        change = self.final(
            *(place, state, affected, spans),
            final.unionByName(due, allowMissingColumns=True),
            pairs,
        )
        if still_open.isEmpty() and replaced.isEmpty() and due.isEmpty():
            return change
        return with_open_rows(place, change, opened.live, still_open, kept.where(~is_due))

    @staticmethod
    def _is_due(place: StageTable, through: int | None) -> Column:
        return F.lit(False) if through is None or place.end is None else place.end <= through

    def all(self, place: StageTable, state: State, computed: DataFrame) -> Change:
        """The commit after which the table has the rows ``computed``, and no others."""
        opened = open_rows(self._gold)
        _, old = final_rows_within(place, [EVERYTHING])
        final, still_open = computed.where(FINAL).drop(STATE), computed.where(~F.col(FINAL))
        patch = self.comparison.patch(self.comparison.of(old.drop("_key"), final))
        change = patched(place, state, patch, [EVERYTHING], None)
        return with_open_rows(place, change, opened.live, still_open, still_open.limit(0))


def _counted(rows: DataFrame, place: StageTable) -> int:
    """The sum of the table's first ``count(*)``."""
    if place.counter is None:
        return 0
    found = rows.agg(F.sum(f"`{place.counter}`").alias("rows")).collect()[0]["rows"]
    return int(found or 0)
