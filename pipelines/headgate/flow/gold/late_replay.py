"""A replay of late pairs: folds them into their final rows, which are computed again from silver.

The late table is marked first; it then shows which pairs a final row contains. A row contains all
its pairs of silver, except those in the late table that no replay has folded; why a pair was late
does not matter. So the change of gold is a function of the tables at the operation's batch id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.declaration.contracts.operation import Document
from headgate.declaration.contracts.operator import (
    begin_of,
    identity_columns,
    key_of,
    operator_of,
)
from headgate.declaration.model import GoldTable
from headgate.declaration.names import INPUT, REPLAYED, SILVER_IDENTITY
from headgate.flow.gold.correcting import Correction
from headgate.flow.gold.fold import GoldFold
from headgate.flow.gold.schema import declared_rows, time_column
from headgate.flow.operations.patch import final_rows_within
from headgate.flow.operations.stage_table import Change, StageTable
from headgate.lake.tables.data_file import FINAL, STATE, DataFile
from headgate.lake.tables.frames import TableRows, micros, row_type
from headgate.lake.tables.history import files_at
from headgate.lake.tables.live_files import overlapping_files
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.spans import EVERYTHING, Span, united
from headgate.lake.tables.staging import stage
from headgate.lake.tables.state import State, add_counts, time_of
from headgate.lake.tables.table import Table

LATE_TIME = "_event_time"


@dataclass(frozen=True)
class LatePairSelection:
    """Selects late pairs: their event times are in ``[begin, end)`` (microseconds since 1970 UTC,
    None for no bound), their keys have the values ``keys``, as text or null, and their rows'
    offsets are in ``offsets``, both ends included (None for no bound). ``inputs`` are the silver
    tables that the rows are of; None for all."""

    begin: int | None
    end: int | None
    keys: tuple[tuple[str, str | None], ...]
    offsets: Span | None = None
    inputs: tuple[str, ...] | None = None

    @staticmethod
    def of(document: Document) -> LatePairSelection:
        keys, inputs = document["keys"], document.get("inputs")
        span, offsets = (document["from"], document["to"]), document.get("offsets")
        return LatePairSelection(
            *span,
            tuple(sorted(keys.items())),
            tuple(offsets) if offsets else None,
            None if inputs is None else tuple(inputs),
        )

    @property
    def span(self) -> Span:
        first, end = EVERYTHING
        return (
            first if self.begin is None else self.begin,
            (end if self.end is None else self.end) - 1,
        )

    def files(self, late: Table) -> tuple[DataFile, ...]:
        """The files of a late table that may have selected pairs."""
        return overlapping_files(late.handle, LATE_TIME, [self.span])

    def has(self, table: GoldTable) -> Column:
        """Whether a late pair is selected and no replay has folded it before. No pair is selected
        if the table no longer has one of the keys."""
        meant = F.col(REPLAYED).isNull() & F.unix_micros(LATE_TIME).between(*self.span)
        if self.offsets is not None:
            meant &= F.col("_offset").between(*self.offsets)
        if self.inputs is not None:
            meant &= F.col(INPUT).isin(*self.inputs)
        by = {b.name: F.expr(f"cast(({b.expression}) as {b.type})") for b in table.by}
        for name, value in self.keys:
            is_there = name in by
            wanted = F.lit(value).cast("string")
            meant &= by[name].cast("string").eqNullSafe(wanted) if is_there else F.lit(False)
        return meant

    def covers(self, first: int, end: int) -> bool:
        """Whether all late pairs of the results that lie in ``[first, end)`` are selected."""
        if self.keys or self.offsets is not None or self.inputs is not None:
            return False
        return self.span[0] <= first and end - 1 <= self.span[1]


def marked_late_rows(
    late: Table,
    state: State,
    files: Sequence[DataFile],
    rows: DataFrame,
    is_meant: Column,
    number: int | None,
    count: int,
) -> Change:
    """The commit of a late table after which those of its rows that are meant have another number
    of a replay; None if they wait. ``rows`` are those of ``files``, with the table's columns.
    ``count`` is how many more rows are marked then."""
    value = F.when(is_meant, F.lit(number).cast("bigint")).otherwise(F.col(REPLAYED))
    columns = row_type(late).fieldNames()
    marked = rows.withColumn(REPLAYED, value).select(*(f"`{name}`" for name in columns))
    moved = stage(late, state, marked, time_column=LATE_TIME, most_files=1)
    total = add_counts(state.total, {"replayed": count})
    return Change(replace(state, total=total), remove=files, moved=moved)


def unmarked_late_rows(
    late: Table, read: TableRows, state: State, selection: LatePairSelection
) -> Change:
    """The commit of a late table after which what a replay has marked waits again. ``read`` reads
    the table."""
    files = selection.files(late)
    rows, is_marked = read.of(files), F.col(REPLAYED) == state.operation
    if not (count := rows.where(is_marked).count()):
        return Change(state)
    return marked_late_rows(late, state, files, rows, is_marked, None, -count)


def is_waiting(operation: int) -> Column:
    """Whether no replay up to this one, by its number, has folded a late pair."""
    return F.col(REPLAYED).isNull() | (F.col(REPLAYED) > operation)


def is_result_final(end: Column, gold: State, declared: GoldTable) -> Column:
    """Whether a replay may fold the late pairs of a result that ends at ``end``, in a gold table
    with the state ``gold``: it is final, or a replay folds into open results, too."""
    if operator_of(declared).end_varies:
        return F.lit(True)
    through = GoldPayload.of(gold).final_through(micros(declared.allowed_lateness))
    return F.lit(False) if through is None else end <= through


class LateReplay:
    """What a replay changes in the late table and in the gold table of a fold."""

    def __init__(self, fold: GoldFold, silver: Table, late: Table, gold: Table) -> None:
        self._fold, declared = fold, fold.declared
        self._silver, self._late, self._gold = silver, late, gold
        self._silver_rows, self._late_rows = (
            TableRows(fold.spark, silver),
            TableRows(fold.spark, late),
        )
        self._begin = begin_of(declared)
        self._reach = operator_of(declared).reach(declared.operator)
        rows = declared_rows(fold.spark, gold, declared)
        self._place = StageTable(gold, rows.of, time_column(declared), key=key_of(declared))
        self._correction = Correction(fold, gold)

    def mark(self, _: StageTable, state: State, document: Document) -> Change:
        """Mark the late pairs that the document selects with the number of the replay. Pairs of
        open results wait for another replay: a pair is late by the watermark of its own partition,
        which may be ahead of the source's watermark. Pairs of results that a published backfill has
        corrected wait, too: the replay would take the correction back. Raises LogGapError if
        another tool has rewritten silver, and the pairs could not be folded."""
        self._gold.refresh()  # an operation that came just before may have changed it
        selection = LatePairSelection.of(document)
        files = selection.files(self._late)
        rows, is_meant = self._late_rows.of(files), self._is_meant(selection)
        if (corrected := self._corrected(rows.where(is_meant))) is not None:
            place = [*SILVER_IDENTITY, *identity_columns(self._fold.declared)]
            waits = self._fold.affected.pairs(rows.where(is_meant), corrected).select(*place)
            rows = rows.join(waits.withColumn("_is_corrected", F.lit(True)), place, "left")
            is_meant &= F.col("_is_corrected").isNull()
        count = rows.where(is_meant).count()
        if not count:
            return Change(state)
        # What is marked must be folded. The batch of the late table is that of its last row.
        if self._silver.refresh().n > (n := self._gold.state.n):
            self._silver_files(n, [EVERYTHING])
        return marked_late_rows(self._late, state, files, rows, is_meant, state.operation, count)

    def unmark(self, _: StageTable, state: State, document: Document) -> Change:
        """Take back what ``mark`` has marked: the pairs wait again."""
        selection = LatePairSelection.of(document)
        return unmarked_late_rows(self._late, self._late_rows, state, selection)

    def fold(self, place: StageTable, state: State, document: Document) -> Change:
        """Compute again the rows of the results that the pairs belong to that ``mark`` has
        marked."""
        self._late.refresh()
        selection = LatePairSelection.of(document)
        state = self._noting_left_out(state, selection)
        marked = self._late_within([selection.span])
        marked = marked.where(F.col(REPLAYED) == state.operation)
        count = marked.count()
        if not count:
            return Change(state)
        state = replace(state, total=add_counts(state.total, {"replayed": count}))
        of_results, correction = self._fold.affected, self._correction
        affected = of_results.of(marked, correction.rows_within).persist()
        try:
            spans = of_results.spans(affected)
            computed = self._defined(state, spans, affected).persist()
            change = correction.both if of_results.changes_open_rows else correction.final
            try:
                return change(place, state, affected, spans, computed, count)
            finally:
                computed.unpersist()
        finally:
            affected.unpersist()

    def left_out(self, document: Document) -> DataFrame:
        """The begin and the end, in microseconds since 1970 UTC, of each result whose late pairs a
        replay would leave waiting now, because a published backfill has corrected the result."""
        self._late.refresh()
        self._gold.refresh()
        selection = LatePairSelection.of(document)
        meant = self._late_within([selection.span]).where(self._is_meant(selection))
        if (corrected := self._corrected(meant)) is None:
            return self._results(meant.limit(0))
        return self._results(self._fold.affected.pairs(meant, corrected))

    def _is_meant(self, selection: LatePairSelection) -> Column:
        """Whether a replay takes a late pair, unless its result is corrected."""
        declared, end = self._fold.declared, self._fold.assignment.end
        return is_result_final(end, self._gold.state, declared) & selection.has(declared)

    def _corrected(self, meant: DataFrame) -> DataFrame | None:
        """Of the results that some late pairs affect, those that published backfills have
        corrected: before the replay, the table has another row than the definition gives. None if
        there is none."""
        payload, of_results = GoldPayload.of(self._gold.state), self._fold.affected
        if not payload.backfills:
            return None
        # The pairs of a result begin with it, or, if its rows decide where it begins and ends, so
        # much earlier or later.
        begin = F.unix_micros(*self._begin)
        near = reduce(
            Column.__or__,
            (
                begin.between(first - self._reach, last + payload.longest)
                for first, last in payload.backfills.values()
            ),
        )
        varies = operator_of(self._fold.declared).end_varies
        rows_within = self._rows_of_both if varies else self._correction.rows_within
        affected = of_results.of(meant.where(near), rows_within)
        if not (spans := of_results.spans(affected)):
            return None
        _, rows = final_rows_within(self._place, spans)
        computed = self._defined(self._gold.state, spans, affected).where(FINAL).drop(STATE)
        compared = self._correction.comparison.of(of_results.rows(rows, affected), computed)
        found = of_results.of_rows(affected, self._correction.comparison.patch(compared))
        return None if found.isEmpty() else found

    def _rows_of_both(self, spans: Sequence[Span]) -> DataFrame:
        """The rows of the gold table near some spans, and those of the definition: where a backfill
        has corrected results, these may begin and end at other times."""
        state = self._gold.state
        longest = GoldPayload.of(state).longest
        read = united((first - longest, last + longest) for first, last in spans)
        rows = self._correction.rows_within(spans)
        return rows.unionByName(self._defined(state, read).select(*rows.columns))

    def _noting_left_out(self, state: State, selection: LatePairSelection) -> State:
        """The state with the results whose pairs ``mark`` has left waiting."""
        payload = GoldPayload.of(state)
        if not payload.backfills:
            return state
        left = self._late_within([selection.span]).where(self._is_meant(selection))
        spans = payload.corrected(self._results(left).collect(), self._reach)
        noted = {
            number: each
            for number, each in payload.left_out.items()
            if not selection.covers(*self._event_times(each["first"], each["end"]))
        }
        for number, (first, end) in spans.items():
            before = noted.get(number, {"first": first, "end": end})
            noted[number] = {
                "operation": state.operation,
                "first": min(first, before["first"]),
                "end": max(end, before["end"]),
            }
        return replace(state, payload=replace(payload, left_out=noted))

    def _event_times(self, first: int, end: int) -> Span:
        """The event times [first, end) of the rows of results that lie in a range."""
        ((begin, last),) = event_times_of(self._fold.declared, [(first, end - 1)])
        return begin, last + 1

    def _results(self, pairs: DataFrame) -> DataFrame:
        return pairs.select(F.unix_micros(*self._begin), self._fold.assignment.end).distinct()

    def _late_within(self, spans: Sequence[Span]) -> DataFrame:
        return self._late_rows.of(overlapping_files(self._late.handle, LATE_TIME, spans))

    def _silver_files(self, n: int, spans: Sequence[Span]) -> tuple[DataFile, ...]:
        """The files that may have rows of some times, of the batches up to ``n``: silver may be
        ahead. No file has rows on both sides of an operation."""
        return files_at(
            self._silver, n, lambda version: overlapping_files(version, LATE_TIME, spans)
        )

    def _defined(
        self, state: State, spans: Sequence[Span], affected: DataFrame | None = None
    ) -> DataFrame:
        """The rows, and their states, that the definition gives for the times ``spans``, of
        affected results or of all."""
        read = event_times_of(self._fold.declared, spans)
        silver = self._silver_rows.of(self._silver_files(state.n, read))
        waiting = self._late_within(read).where(F.col(REPLAYED).isNull())
        included = self._fold.included(silver, waiting)
        if affected is not None:
            included = self._fold.affected.pairs(included, affected)
        lateness = micros(self._fold.declared.allowed_lateness)
        final_through = GoldPayload.of(state).final_through(lateness)
        return self._fold.results(included, time_of(state.at), final_through)


def event_times_of(declared: GoldTable, spans: Sequence[Span]) -> Sequence[Span]:
    """The event times of the rows of results in some spans. Files have bounds of event times alone,
    which say nothing about arrivals."""
    return spans if declared.time == "event" else [EVERYTHING]
