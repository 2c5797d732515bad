"""Brings computed rows of some affected results into a gold table: final rows and open ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
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
from headgate.flow.operations.drain import closing
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
from headgate.lake.tables.spans import Span, united
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
    ) -> Change:
        """As ``final``, and the open rows of the affected results are those of ``computed``."""
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
        change = self.final(place, state, affected, spans, computed, pairs)
        if still_open.isEmpty() and replaced.isEmpty():
            return change
        return with_open_rows(place, change, opened.live, still_open, kept)

    def closing(
        self,
        place: StageTable,
        state: State,
        affected: DataFrame,
        spans: Sequence[Span],
        computed: DataFrame,
    ) -> Change:
        """As ``both``, and all open rows become final. ``computed`` has only final rows."""
        opened = open_rows(self._gold)
        kept = self._affected.others(self._rows.of(opened.files), affected)
        kept = kept.drop(FINAL).withColumn(FINAL, F.lit(True))
        rows = computed.unionByName(kept, allowMissingColumns=True)
        assert place.end is not None
        last = rows.agg(F.max(place.end)).collect()[0][0]
        payload = replace(closing(GoldPayload.of(state), state.operation, last), open=0)
        state = replace(state, payload=payload)
        change = self.final(place, state, affected, spans, rows, None)
        return replace(change, remove=(*change.remove, *opened.live))


def _counted(rows: DataFrame, place: StageTable) -> int:
    """The sum of the table's first ``count(*)``."""
    if place.counter is None:
        return 0
    found = rows.agg(F.sum(f"`{place.counter}`").alias("rows")).collect()[0]["rows"]
    return int(found or 0)
