"""A replay of late rows of an append operator: the results that they affect are computed again.

The late table is marked first; it then shows which rows are included. Results that are not decided
yet have the marked rows when they are computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.declaration.contracts.operation import Document
from headgate.declaration.contracts.operator import key_of
from headgate.declaration.model import GoldTable
from headgate.declaration.names import REPLAYED, RESULT_TIME
from headgate.flow.gold.append.inputs import EVENT_TIME, InputRows
from headgate.flow.gold.append.results import AppendResults
from headgate.flow.gold.late_replay import (
    LatePairSelection,
    marked_late_rows,
    unmarked_late_rows,
)
from headgate.flow.gold.schema import compared_columns, gold_type
from headgate.flow.operations.patch import RowComparison, final_rows_within, patched
from headgate.flow.operations.stage_table import Change, StageTable
from headgate.lake.tables.frames import TableRows, micros
from headgate.lake.tables.open_rows import open_rows
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.spans import EVERYTHING, Span, united
from headgate.lake.tables.staging import stage
from headgate.lake.tables.state import State, add_counts, time_of
from headgate.lake.tables.table import Table

_MOST_SPANS = 100
"""Results of more spans than this are computed as those of one."""
_CELL = 60_000_000
"""The times of marked rows are collected as multiples of so many microseconds, so that only few
numbers are held in memory."""


class AppendReplay:
    """What a replay changes in the late table and in the gold table."""

    def __init__(self, results: AppendResults, inputs: InputRows, gold: Table) -> None:
        self._results, self._inputs, self._gold = results, inputs, gold
        self._declared: GoldTable = inputs.declared
        self._late_rows = TableRows(inputs.spark, inputs.late)
        compared = compared_columns(self._declared)
        self._comparison = RowComparison(
            key_of(self._declared), compared, gold_type(self._declared)
        )

    def mark(self, _: StageTable, state: State, document: Document) -> Change:
        """Mark the late rows that the document selects with the number of the replay. Raises
        LogGapError if another tool has rewritten silver, and the rows could not be included."""
        selection = LatePairSelection.of(document)
        files = selection.files(self._inputs.late)
        rows, is_meant = self._late_rows.of(files), selection.has(self._declared)
        if not (count := rows.where(is_meant).count()):
            return Change(state)
        # What is marked must be included, from silver as of the batch of gold.
        self._inputs.files_at(self._gold.refresh(), [EVERYTHING])
        late, number = self._inputs.late, state.operation
        return marked_late_rows(late, state, files, rows, is_meant, number, count)

    def unmark(self, _: StageTable, state: State, document: Document) -> Change:
        """Take back what ``mark`` has marked: the rows wait again."""
        selection = LatePairSelection.of(document)
        return unmarked_late_rows(self._inputs.late, self._late_rows, state, selection)

    def include(self, place: StageTable, state: State, document: Document) -> Change:
        """Compute again the results that the marked rows affect."""
        late = self._inputs.late
        late.refresh()
        selection = LatePairSelection.of(document)
        marked = self._late_rows.of(selection.files(late)).where(F.col(REPLAYED) == state.operation)
        if not (count := marked.count()):
            return Change(state)
        state = replace(state, total=add_counts(state.total, {"replayed": count}))
        change = Change(state)
        if spans := self._affected(marked, state):
            change = self._patched(place, state, spans)
        return self._with_open_rows(place, change) if self._declared.live else change

    def _patched(self, place: StageTable, state: State, spans: Sequence[Span]) -> Change:
        computed = self._computed(state, spans).persist()
        try:
            _, old = final_rows_within(place, spans)
            old = old.drop("_key").where(_within(spans))
            patch = self._comparison.patch(self._comparison.of(old, computed))
            return patched(place, state, patch, spans, None)
        finally:
            computed.unpersist()

    def _with_open_rows(self, place: StageTable, change: Change) -> Change:
        """The change with the open rows of a live table computed again, too."""
        state, (first, last) = change.state, EVERYTHING
        payload = GoldPayload.of(state)
        output = payload.final_through(micros(self._declared.allowed_lateness))
        begin = first if output is None else output
        rows = self._results.decided(state, (begin, last), None, time_of(state.at), begin)
        staged = stage(place.table, state, rows, time_column=RESULT_TIME)
        payload = replace(payload, open=sum(file.rows for file in staged))
        return replace(
            change,
            state=replace(state, payload=payload),
            add=(*change.add, *staged),
            remove=(*change.remove, *open_rows(place.table).live),
        )

    def _affected(self, marked: DataFrame, state: State) -> list[Span]:
        """The times below the output watermark at which results that some rows affect are
        decided."""
        lateness = micros(self._declared.allowed_lateness)
        output = GoldPayload.of(state).final_through(lateness)
        if output is None:
            return []
        cell = F.floor(F.unix_micros(EVENT_TIME) / F.lit(_CELL)).cast("bigint").alias("cell")
        begins = (row["cell"] * _CELL for row in marked.select(cell).distinct().collect())
        spans = united((each, each + _CELL - 1 + self._results.reach) for each in begins)
        spans = [(first, min(last, output - 1)) for first, last in spans if first < output]
        return spans if len(spans) <= _MOST_SPANS else [(spans[0][0], spans[-1][1])]

    def _computed(self, state: State, spans: Sequence[Span]) -> DataFrame:
        """The rows that the definition gives for some spans."""
        parts = (self._results.decided(state, span, None, time_of(state.at)) for span in spans)
        return reduce(DataFrame.unionByName, parts)


def _within(spans: Iterable[Span]) -> Column:
    time = F.unix_micros(RESULT_TIME)
    return reduce(Column.__or__, (time.between(*span) for span in spans))
