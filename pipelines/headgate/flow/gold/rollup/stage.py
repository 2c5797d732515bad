"""The stage of a rollup: new final rows are folded into open results, and corrections of the table
that it reads compute the results again that they affect.

At every position, the rollup has the rows that its definition gives for the final rows which the
other table has at this position. So it has no late rows: a row that comes for a result which a
drain has closed corrects it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headgate.declaration.contracts.operation import Document
from headgate.declaration.contracts.operator import key_of, operator_of
from headgate.declaration.kinds import GOLD
from headgate.declaration.model import GoldTable
from headgate.flow.gold.aggregator import batch_constants
from headgate.flow.gold.correcting import Correction
from headgate.flow.gold.fold import GoldFold
from headgate.flow.gold.rollup.following import (
    FinalChange,
    changes_after,
    final_files_within,
    gap,
    steps,
)
from headgate.flow.gold.rollup.rows import FinalRows
from headgate.flow.gold.schema import declared_rows, gold_type, time_column
from headgate.flow.operations.drain import closing
from headgate.flow.operations.stage_table import Change, StageTable
from headgate.lake.tables.data_file import STATE, DataFile
from headgate.lake.tables.frames import arrow_schema, micros
from headgate.lake.tables.history import Watermarks
from headgate.lake.tables.live_files import live_files
from headgate.lake.tables.open_rows import open_rows
from headgate.lake.tables.payloads.gold import GONE, GoldPayload
from headgate.lake.tables.row_counts import require_all
from headgate.lake.tables.snapshot import TablePosition
from headgate.lake.tables.spans import EVERYTHING, Span
from headgate.lake.tables.staging import stage
from headgate.lake.tables.state import Counts, State, add_counts, just_after, time_of
from headgate.lake.tables.table import Table, TableOf
from headgate.lake.tables.table_schema import TableSchema

_ALL = 1 << 62
"""All results end before this time."""


class RollupStage:
    """A ``GoldStage`` without a late table. ``upstream`` is a reader of the table ``above``."""

    def __init__(self, table: TableOf, fold: GoldFold, above: GoldTable) -> None:
        self._fold, self._spark = fold, fold.spark
        self._declared, self._above = (declared := fold.declared), above
        self._lateness = micros(declared.allowed_lateness)
        self._time_column = time_column(declared)
        self._above_table = table(GOLD.path(above.name)).reader()
        self.upstream: Sequence[Table] = (self._above_table,)
        self.gold = table(GOLD.path(declared.name))
        self._input = FinalRows(fold.spark, self._above_table, above)
        self._rows = declared_rows(fold.spark, self.gold, declared)
        self._correction = Correction(fold, self.gold)
        operator = operator_of(declared)
        self._ends = operator.ends
        windows = operator.pairs_per_row(declared.operator)
        self._pairs_per_row = None if declared.where else windows
        self._place = StageTable(
            *(self.gold, self._rows.of, self._time_column, fold.assignment.end),
            key=key_of(declared),
            counter=declared.counter,
            end_varies=operator.end_varies,
            follow=self.follow,
        )
        self.places: Sequence[StageTable] = (self._place,)

    def shapes(self, silver: Mapping[str, StructType]) -> tuple[TableSchema, ...]:
        schema = arrow_schema(gold_type(self._declared))
        return (TableSchema(self.gold, schema, self._time_column),)

    def reached(self) -> int:
        return self.upstream[0].refresh().n

    def catch_up(
        self, upto: int, now: datetime, most_steps: int | None, watermarks: Watermarks
    ) -> None:
        held, above = self.gold.refresh(), self._above_table.refresh()
        if held.n >= upto and held.operation >= above.operation:
            return
        if (changes := changes_after(self._above_table, held.n, held.operation)) is None:
            self._commit(self._compared(held, just_after(held, now)))
            return
        for change in islice(steps(changes, upto, held.operation), most_steps):
            held = self.gold.refresh()
            self._commit(self._stepped(held, change, just_after(held, now)))

    def follow(self, place: StageTable, state: State, *, closes: bool) -> Change:
        """How an operation changes the table, once the table that it reads has carried it out."""
        held = self.gold.refresh()
        self._above_table.refresh()
        changes = changes_after(self._above_table, held.n, held.operation) or ()
        of_operation = (c for c in changes if c.last.state.operation == state.operation)
        if (change := next(of_operation, None)) is None:
            raise gap(self.gold.name, self._above_table, held)
        # A drain leaves results open that never end.
        closes = closes and self._ends
        return self._changed(state, held, change, time_of(state.at), closes=closes)

    def late_pairs(self, rows: DataFrame) -> DataFrame:
        raise NotImplementedError("no row of a rollup is late")

    def can_replay(self) -> Column:
        raise NotImplementedError("no row of a rollup is late")

    def left_out(self, document: Document) -> DataFrame:
        raise NotImplementedError("no row of a rollup is late")

    def defined_rows(
        self,
        files: Mapping[str, Sequence[DataFile]],
        late: Sequence[DataFile],
        gold: State,
        now: datetime,
    ) -> DataFrame:
        """All rows, open and final, that the definition of the table gives for some files of the
        table that it reads when it is at the state ``gold`` itself. ``late`` is empty."""
        through = GoldPayload.of(gold).final_through(self._lateness)
        return self._results(files[self._above.name], now, through).drop(STATE)

    def inside(
        self, rows: DataFrame, computed: DataFrame, begin: int, end: int, *, only_final: bool
    ) -> tuple[DataFrame, ...]:
        """As ``FoldStage.inside``."""
        span = begin, end - 1
        return self._fold.affected.inside(rows, computed, span, only_final=only_final)

    def _compared(self, held: State, now: datetime) -> Change:
        """The commit of a table that begins, or cannot follow because the log or a file of the
        other table is not there any more, such as after a restore. It gets the rows that all final
        rows of the other table give. Those that differ are corrected."""
        above, payload = self._above_table.state, GoldPayload.of(held)
        theirs = GoldPayload.of(above)
        ends = (payload.closed_through, theirs.closed_through)
        closed = max((end for end in ends if end is not None), default=None)
        payload = replace(payload, watermark=theirs.watermark, closed_through=closed)
        state = replace(held.advanced_to(above.n, now, payload), operation=above.operation)
        files = [file for file in live_files(self._above_table.handle) if file.is_final]
        through = payload.final_through(self._lateness)
        rows = self._results(files, now, through).persist()
        try:
            pairs = self._pairs(files).count() - held.total.get("pairs", 0)
            key = list(key_of(self._declared))
            before = self._correction.rows_within([EVERYTHING])
            gone = before.join(rows.select(*key), key, "left_anti").count()
            counts = {"pairs": pairs, "folded": pairs, **({GONE: gone} if gone else {})}
            state = state.counting(counts, changed=True)
            return self._correction.all(self._place, state, rows)
        finally:
            rows.unpersist()

    def _stepped(self, held: State, change: FinalChange, now: datetime) -> Change:
        """The commit of some batches."""
        above = change.last.state
        watermark = GoldPayload.of(above).watermark
        payload = replace(GoldPayload.of(held), watermark=watermark)
        # If the other table could not follow its own, its commit contains operations, too.
        operation = max(held.operation, above.operation)
        state = replace(held.advanced_to(above.n, now, payload), operation=operation)
        return self._changed(state, held, change, now, closes=False)

    def _changed(
        self, state: State, held: State, change: FinalChange, now: datetime, *, closes: bool
    ) -> Change:
        before = GoldPayload.of(held).final_through(self._lateness)
        if change.removed or self._reaches(change.new, before):
            return self._corrected(state, change, now, closes=closes)
        through = _ALL if closes else GoldPayload.of(state).final_through(self._lateness)
        if change.new or self._makes_final(before, through):
            return self._folded(state, change, now, through, closes=closes)
        return self._counted(state, {})

    def _reaches(self, new: Sequence[DataFile], through: int | None) -> bool:
        """Whether some new rows may belong to results that are final already: after a drain, or if
        they are those of a correction."""
        if not new or through is None:
            return False
        return not self._pairs(new).where(self._fold.assignment.closed_by <= through).isEmpty()

    def _makes_final(self, before: int | None, through: int | None) -> bool:
        """Whether a result may become final without a new row."""
        if not self._ends or through is None or not GoldPayload.of(self.gold.state).open:
            return False
        if before is None:
            return True
        operator = operator_of(self._declared)
        following = operator.first_after(self._declared.operator, before)
        return following is None or following[1] <= through

    def _folded(
        self,
        state: State,
        change: FinalChange,
        now: datetime,
        through: int | None,
        *,
        closes: bool,
    ) -> Change:
        """New rows are folded into open results, which need no other row."""
        opened, observed = open_rows(self.gold), Observation()
        pairs = self._pairs(change.new).withColumn("_late", F.lit(None).cast("string"))
        constants = batch_constants(self._spark, now, through)
        held = self._rows.of(opened.files)
        rows = self._fold.aggregator.step(pairs, held, constants, observed)
        if closes:
            # The end up to which the drain closes the table, and the rows, need the same work.
            rows = rows.persist()
        try:
            staged = stage(self.gold, state, rows, time_column=self._time_column)
            last = rows.agg(F.max(self._fold.assignment.end)).collect()[0][0] if closes else None
        finally:
            if closes:
                rows.unpersist()
        found = {name: int(count or 0) for name, count in observed.get.items()}
        self._require_all(state, change.new, found["pairs"])
        payload = GoldPayload.of(state)
        longest = max(payload.longest, found.get("longest", 0))
        payload = replace(payload, open=found["rows"] - found["final"], longest=longest)
        gone = found.get(GONE, 0)
        if closes:
            payload = _after_drain(payload, state, last, removes=bool(gone))
        counts = {"pairs": found["pairs"], "folded": found["pairs"], "final": found["final"]}
        if gone:
            counts[GONE] = gone
        return self._counted(replace(state, payload=payload), counts, staged, opened.live)

    def _corrected(
        self, state: State, change: FinalChange, now: datetime, *, closes: bool
    ) -> Change:
        """The results that new and removed rows belong to are computed again."""
        of_results, correction = self._fold.affected, self._correction
        new = self._pairs(change.new)
        removed = self._assigned(self._input.removed(change.removed, change.moved))
        pairs = new.count() - removed.count()
        affected = of_results.of(new.unionByName(removed), correction.rows_within).persist()
        try:
            spans = of_results.spans(affected)
            at = TablePosition(self._above_table, change.last.version, change.last.state)
            files = final_files_within(self._above, at, spans)
            through = _ALL if closes else GoldPayload.of(state).final_through(self._lateness)
            computed = self._results(files, now, through, affected).persist()
            try:
                state = self._counting(state, affected, spans, computed, pairs)
                if closes:
                    state = self._closed(state, affected, computed)
                how = self._place, state, affected, spans, computed
                return correction.both(*how, None, through)
            finally:
                computed.unpersist()
        finally:
            affected.unpersist()

    def _counting(
        self,
        state: State,
        affected: DataFrame,
        spans: Sequence[Span],
        computed: DataFrame,
        pairs: int,
    ) -> State:
        """The state with the pairs that a correction adds or takes away. ``GONE`` counts the
        affected rows of the table that it will not have."""
        counts = {"pairs": pairs, "folded": pairs}
        if state.kind != "data":
            return replace(state, total=add_counts(state.total, counts))
        key = list(key_of(self._declared))
        before = self._fold.affected.rows(self._correction.rows_within(spans), affected)
        if gone := before.join(computed.select(*key), key, "left_anti").count():
            counts[GONE] = gone
        return state.counting(counts, changed=True)

    def _closed(self, state: State, affected: DataFrame, computed: DataFrame) -> State:
        """The state after a drain, which makes all rows final."""
        opened = self._rows.of(open_rows(self.gold).files)
        others = self._fold.affected.others(opened, affected)
        end = self._fold.assignment.end.alias("end")
        ends = computed.select(end).unionByName(others.select(end))
        last = ends.agg(F.max("end")).collect()[0][0]
        payload = _after_drain(GoldPayload.of(state), state, last, removes=True)
        return replace(state, payload=replace(payload, open=0))

    def _counted(
        self,
        state: State,
        counts: Counts,
        add: Sequence[DataFile] = (),
        remove: Sequence[DataFile] = (),
    ) -> Change:
        """A commit with its counts."""
        if state.kind == "data":
            changed = bool(counts.get("folded") or counts.get("final"))
            state = state.counting(counts, changed=changed)
        else:
            kept = {name: count for name, count in counts.items() if name != GONE}
            state = replace(state, total=add_counts(state.total, kept), changed_at=state.at)
        return Change(state, add=add, remove=remove)

    def _require_all(self, state: State, new: Sequence[DataFile], pairs: int) -> None:
        if self._pairs_per_row is not None:
            there = sum(file.rows for file in new) * self._pairs_per_row
            what = f"pairs of the rows of {self._above_table.name} were counted"
            require_all(self.gold.name, state, pairs, there, what)

    def _pairs(self, files: Sequence[DataFile]) -> DataFrame:
        return self._assigned(self._input.of(files))

    def _assigned(self, rows: DataFrame) -> DataFrame:
        return self._fold.pairs.assigned(rows)

    def _results(
        self,
        files: Sequence[DataFile],
        now: datetime,
        through: int | None,
        affected: DataFrame | None = None,
    ) -> DataFrame:
        """The rows, and their states, that the definition gives for some files of the other table,
        of affected results or of all."""
        pairs = self._pairs(files)
        if affected is not None:
            pairs = self._fold.affected.pairs(pairs, affected)
        return self._fold.results(pairs, now, through)

    def _commit(self, change: Change) -> None:
        self.gold.commit(change.state, change.add, change.remove, moved=change.moved)


def _after_drain(
    held: GoldPayload, state: State, last: int | None, *, removes: bool
) -> GoldPayload:
    """As ``closing``. A drain that removes results is not among the drains, of which publications
    know that they remove none (``flow.publish.changes``)."""
    payload = closing(held, state.operation, last)
    return replace(payload, drains=held.drains) if removes else payload
