"""The stage of an append operator: each result is computed once, from the rows of silver.

A step takes the new rows of all inputs, puts the late ones into the late table, and computes the
results between the output watermark before it and the one after it. The table keeps no state: what
a result needs is read again from silver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headgate.declaration.contracts.operation import Document
from headgate.declaration.contracts.operator import key_of, late_identity
from headgate.declaration.kinds import GOLD, LATE, SILVER, input_log_of
from headgate.declaration.model import GoldTable
from headgate.declaration.names import RESULT_TIME
from headgate.flow.gold.append.corrections import AppendReplay
from headgate.flow.gold.append.inputs import EVENT_TIME, Files, InputRows, late_type
from headgate.flow.gold.append.results import AppendResults
from headgate.flow.gold.schema import gold_type
from headgate.flow.operations.drain import closing
from headgate.flow.operations.stage_table import Change, StageTable
from headgate.lake.tables.arrow import stage_arrow
from headgate.lake.tables.data_file import FINAL, DataFile
from headgate.lake.tables.frames import TableRows, arrow_schema, micros
from headgate.lake.tables.history import Watermarks
from headgate.lake.tables.input_steps import InputStep, InputTables
from headgate.lake.tables.open_rows import open_rows
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.row_counts import require_all
from headgate.lake.tables.spans import EVERYTHING, Span
from headgate.lake.tables.staging import Prepared, stage
from headgate.lake.tables.state import State, add_counts, just_after, time_of
from headgate.lake.tables.table import Table, TableOf
from headgate.lake.tables.table_schema import TableSchema


class AppendStage:
    """A ``GoldStage``, shared by all append operators. Its commits count the rows of all inputs:
    ``pairs = folded + late``."""

    def __init__(self, spark: SparkSession, table: TableOf, declared: GoldTable) -> None:
        self._spark, self._declared = spark, declared
        self._lateness = micros(declared.allowed_lateness)
        silver = {name: table(SILVER.path(name)).reader() for name in declared.inputs}
        several = len({*declared.sources}) > 1
        log = table(input_log_of(declared.sources)).reader() if several else None
        self._read = InputTables(silver, declared.sources, log)
        self.upstream: Sequence[Table] = (*silver.values(), *([log] if log else []))
        self.late, self.gold = table(LATE.path(declared.name)), table(GOLD.path(declared.name))
        self._inputs = InputRows(spark, declared, silver, self.late)
        self._results = AppendResults(spark, declared, self._inputs)
        replay = AppendReplay(self._results, self._inputs, self.gold)
        late = StageTable(
            *(self.late, TableRows(spark, self.late).of, EVENT_TIME),
            replay=replay.mark,
            give_up=replay.unmark,
        )
        gold = StageTable(
            *(self.gold, TableRows(spark, self.gold).of, RESULT_TIME),
            key=key_of(declared),
            replay=replay.include,
            drain=self._drain,
        )
        self.places: Sequence[StageTable] = (late, gold)

    def shapes(self, silver: Mapping[str, StructType]) -> tuple[TableSchema, ...]:
        late = arrow_schema(late_type(self._declared, silver))
        gold = arrow_schema(gold_type(self._declared))
        return (
            TableSchema(self.late, late, EVENT_TIME),
            TableSchema(self.gold, gold, RESULT_TIME),
        )

    def catch_up(
        self, upto: int, now: datetime, most_steps: int | None, watermarks: Watermarks
    ) -> None:
        held = self.gold.refresh()
        read = GoldPayload.of(held).inputs
        for step in islice(self._read.steps(held.n, read, upto, watermarks), most_steps):
            held = self.gold.refresh()
            at = just_after(held, now)
            gold, late = self._prepare_gold(held, step, at)
            # Late commits before gold: if gold has a batch, its late table must have it too.
            if gold.state.batch["late"]:
                gold = replace(gold, side=self._prepare_late(step, at, gold.state, late))
            gold.require_side_rows("late", self.late)
            gold.commit()

    def reached(self) -> int:
        return self._read.reached()

    def late_pairs(self, rows: DataFrame) -> DataFrame:
        output = GoldPayload.of(self.gold.refresh()).final_through(self._lateness)
        time, clock = F.unix_micros(EVENT_TIME), F.unix_micros("_clock")
        is_late = F.coalesce(clock > time + F.lit(self._lateness), F.lit(False))
        if output is not None:
            is_late |= time < F.lit(output)
        return rows.where(is_late)

    def can_replay(self) -> Column:
        # Results that are not decided yet have the row when they are.
        return F.lit(True)

    def left_out(self, document: Document) -> DataFrame:
        return self._spark.createDataFrame([], "begin bigint, end bigint")

    def defined_rows(
        self,
        silver: Files,
        late: Sequence[DataFile],
        gold: State,
        now: datetime,
    ) -> DataFrame:
        """As ``FoldStage.defined_rows``; ``silver`` has the files of each input."""
        waiting = self._inputs.waiting(late, gold.operation)
        output = GoldPayload.of(gold).final_through(self._lateness)
        first, last = self._span(None, output)
        final = first if output is None else output
        return self._results.of(silver, waiting, (first, last), now, final)

    def inside(
        self, rows: DataFrame, computed: DataFrame, begin: int, end: int, *, only_final: bool
    ) -> tuple[DataFrame, ...]:
        """As ``FoldStage.inside``."""
        time = F.unix_micros(RESULT_TIME)
        is_inside = (time >= begin) & (time < end)
        return rows.where(is_inside), computed.where(is_inside)

    def _prepare_gold(
        self, held: State, step: InputStep, now: datetime
    ) -> tuple[Prepared, pa.Table]:
        """The commit of a step, and its late rows."""
        before = GoldPayload.of(held)
        marks = step.watermarks
        watermark = marks.of(self._declared.time)
        payload = replace(before, watermark=watermark, inputs=marks.inputs)
        state = held.advanced_to(step.n, now, payload)
        files = dict(zip(self._declared.inputs, step.files, strict=True))
        late = self._inputs.late_rows(files, before)
        staged, final, opened = self._staged(state, before, payload, late, now)
        state = replace(state, payload=replace(payload, open=opened))
        rows = sum(file.rows for each in step.files for file in each)
        counts = {"pairs": rows, "folded": rows - len(late), "late": len(late), "final": final}
        state = state.counting(counts, changed=bool(counts["folded"] or final))
        replaced = () if before.open == 0 else open_rows(self.gold).live
        return Prepared(self.gold, state, add=staged, remove=replaced), late

    def _staged(
        self,
        state: State,
        before: GoldPayload,
        after: GoldPayload,
        late: pa.Table,
        now: datetime,
    ) -> tuple[tuple[DataFile, ...], int, int]:
        """The files of the results between two output watermarks, and of the open ones if the table
        is live; and the numbers of final and of open rows, which are counted after the last
        shuffle."""
        floor, output = (each.final_through(self._lateness) for each in (before, after))
        span = first, last = self._span(floor, output)
        if first > last:
            return (), 0, 0
        final = first if output is None else output
        rows = self._results.decided(state, span, late, now, final)
        observed = Observation()
        is_final = F.col(FINAL)
        numbers = (F.count_if(is_final).alias("final"), F.count_if(~is_final).alias("open"))
        staged = stage(self.gold, state, rows.observe(observed, *numbers), time_column=RESULT_TIME)
        return staged, int(observed.get["final"] or 0), int(observed.get["open"] or 0)

    def _span(self, floor: int | None, output: int | None) -> Span:
        """The times of the results that a step computes; the last is before the first if there are
        none."""
        first, last = EVERYTHING
        begin = first if floor is None else floor
        end = last if self._declared.live else (first if output is None else output) - 1
        return begin, end

    def _prepare_late(
        self, step: InputStep, now: datetime, gold: State, late: pa.Table
    ) -> Prepared | None:
        """The commit of the late rows of a step."""
        there = self.late.refresh()
        # It is ahead of gold if a crash came between the two commits of an earlier step.
        count = gold.total["late"] - there.total.get("late", 0)
        if there.n >= step.n or count <= 0:
            return None
        if count < len(late):
            files = self._inputs.late_files([EVERYTHING])
            known = TableRows(self._spark, self.late).of(files)
            place = [*late_identity(self._declared)]
            rows = self._spark.createDataFrame(late)
            new = rows.join(known.select(*place), place, "left_anti")
            late = new.select(*late.column_names).toArrow().cast(late.schema)
        state = there.advanced_to(step.n, now)
        require_all(self.late.name, state, len(late), count, "late rows are new")
        staged = stage_arrow(self.late, state, late, time_column=EVENT_TIME)
        return Prepared(self.late, state.counting({"late": count}), staged)

    def _drain(self, place: StageTable, state: State) -> Change:
        """The commit of a drain: all results of the rows so far are final, and later rows before
        the last one's time are late."""
        held = GoldPayload.of(state)
        floor, (first, last) = held.final_through(self._lateness), EVERYTHING
        span = first if floor is None else floor, last
        at = time_of(state.at)
        rows = self._results.decided(state, span, None, at).persist()
        try:
            found = rows.agg(
                F.count(F.lit(1)).alias("rows"), F.max(F.unix_micros(RESULT_TIME)).alias("last")
            ).collect()[0]
            if not found["rows"]:
                return Change(state)
            staged = stage(self.gold, state, rows, time_column=RESULT_TIME)
        finally:
            rows.unpersist()
        payload = closing(held, state.operation, found["last"] + 1)
        total = add_counts(state.total, {"final": found["rows"]})
        state = replace(state, payload=replace(payload, open=0), total=total, changed_at=state.at)
        return Change(state, add=staged, remove=open_rows(self.gold).live)
