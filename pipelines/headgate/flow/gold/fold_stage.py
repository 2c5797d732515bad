"""The stage of a fold: late pairs go to the late table, all others are folded into open results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from itertools import islice

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headgate.declaration.contracts.operation import Document
from headgate.declaration.contracts.operator import key_of, operator_of
from headgate.declaration.kinds import GOLD, LATE, SILVER
from headgate.declaration.names import REPLAYED, TimeColumns
from headgate.flow.gold.aggregator import batch_constants
from headgate.flow.gold.fold import GoldFold
from headgate.flow.gold.late_replay import LATE_TIME, LateReplay, is_result_final, is_waiting
from headgate.flow.gold.recomputing import RecomputedResults, computed_rows
from headgate.flow.gold.schema import declared_rows, gold_type, late_type, time_column
from headgate.flow.operations.stage_table import StageTable
from headgate.lake.tables.arrow import stage_arrow
from headgate.lake.tables.damage import sound_batches
from headgate.lake.tables.data_file import STATE, DataFile
from headgate.lake.tables.frames import Projection, TableRows, arrow_schema, micros, row_type
from headgate.lake.tables.history import Watermarks, batch_steps, files_after
from headgate.lake.tables.log import Commit
from headgate.lake.tables.open_rows import open_rows
from headgate.lake.tables.payloads.gold import GONE, GoldPayload
from headgate.lake.tables.payloads.silver import SilverPayload
from headgate.lake.tables.row_counts import require_all
from headgate.lake.tables.staging import Prepared, stage
from headgate.lake.tables.state import State, just_after
from headgate.lake.tables.table import Table, TableOf
from headgate.lake.tables.table_schema import TableSchema

FEW = 10_000
"""Up to this many late pairs of a step are written without a Spark job."""
MOST = 100_000
"""At most this many rows that may be late are held in memory."""


def late_candidates(
    silver: Table, files: Iterable[DataFile], slack: int, times: TimeColumns
) -> pa.Table | None:
    """The rows of some files that were behind the watermark at arrival by more than ``slack``
    microseconds (``Assignment``); None if there are more than ``MOST``. Unless a drain has closed
    results, no other row is late. Raises DamagedFileError."""
    behind_by = pa.scalar(slack, pa.duration("us"))
    schema = arrow_schema(row_type(silver))
    found = [schema.empty_table()]
    for file in files:
        for batch in sound_batches(silver.storage, file, schema.names):
            from_then = pc.add(batch.column(times.time), behind_by)
            behind = batch.filter(pc.greater(batch.column(times.clock), from_then))
            found.append(pa.Table.from_batches([behind]).select(schema.names).cast(schema))
            if sum(map(len, found)) > MOST:
                return None
    return pa.concat_tables(found).combine_chunks()


class FoldStage:
    """A ``GoldStage``, shared by all folds."""

    def __init__(self, table: TableOf, fold: GoldFold) -> None:
        self._fold, self._spark = fold, (spark := fold.spark)
        self._declared = declared = fold.declared
        self._pairs, self._assignment = fold.pairs, fold.assignment
        self._time_column = time_column(declared)
        windows = operator_of(declared).pairs_per_row(declared.operator)
        self._pairs_per_row = None if declared.where else windows
        self._silver = table(SILVER.path(declared.silver)).reader()
        self.upstream: Sequence[Table] = (self._silver,)
        self.late = table(LATE.path(declared.name))
        self.gold = table(GOLD.path(declared.name))
        self._silver_rows = TableRows(spark, self._silver)
        self._gold_rows = declared_rows(spark, self.gold, declared)
        replay = self._replay = LateReplay(self._fold, self._silver, self.late, self.gold)
        late = StageTable(
            *(self.late, TableRows(spark, self.late).of, LATE_TIME),
            replay=replay.mark,
            give_up=replay.unmark,
        )
        operator = operator_of(declared)
        end = fold.assignment.end if operator.ends and operator.is_timed else None
        gold = StageTable(
            *(self.gold, self._gold_rows.of, self._time_column, end),
            key=key_of(declared),
            counter=declared.counter,
            end_varies=operator.end_varies,
            replay=replay.fold,
        )
        self.places: Sequence[StageTable] = (late, gold)

    def shapes(self, silver: Mapping[str, StructType]) -> tuple[TableSchema, ...]:
        above = silver[self._declared.silver]
        gold, late = gold_type(self._declared), late_type(self._declared, above)
        return (
            TableSchema(self.late, arrow_schema(late), LATE_TIME),
            TableSchema(self.gold, arrow_schema(gold), self._time_column),
        )

    def reached(self) -> int:
        return self.upstream[0].refresh().n

    def catch_up(
        self, upto: int, now: datetime, most_steps: int | None, watermarks: Watermarks
    ) -> None:
        ahead = batch_steps(self._silver, self.gold.refresh().n, upto, watermarks)
        for group in islice(ahead, most_steps):
            held = self.gold.refresh()
            at = just_after(held, now)
            gold = self._prepare_gold(held, group, at)
            # Late commits before gold: if gold has a batch, its late table must have it too.
            if gold.state.batch["late"]:
                late = self._prepare_late(held, group, at, gold.state.total["late"])
                gold = replace(gold, side=late)
            gold.require_side_rows("late", self.late)
            gold.commit()

    def computed_rows(
        self,
        files: Sequence[DataFile],
        meant: RecomputedResults,
        waiting: DataFrame,
        now: datetime,
    ) -> DataFrame:
        """The rows of a range that some files of silver give, in one pass (``recomputing.py``)."""
        silver, batches = self._silver_rows.of(files), {file.n for file in files}
        return computed_rows(self._fold, silver, batches, meant, waiting, now)

    def defined_rows(
        self,
        silver: Mapping[str, Sequence[DataFile]],
        late: Sequence[DataFile],
        gold: State,
        now: datetime,
    ) -> DataFrame:
        """All rows, open and final, that the definition of the table gives for some files of silver
        and late when the table is at the state ``gold``. ``silver`` has the files of each table by
        its name, and no later batch."""
        lateness = micros(self._declared.allowed_lateness)
        waiting = TableRows(self._spark, self.late).of(late).where(is_waiting(gold.operation))
        included = self._fold.included(self._silver_rows.of(silver[self._declared.silver]), waiting)
        final_through = GoldPayload.of(gold).final_through(lateness)
        return self._fold.results(included, now, final_through).drop(STATE)

    def inside(
        self, rows: DataFrame, computed: DataFrame, begin: int, end: int, *, only_final: bool
    ) -> tuple[DataFrame, ...]:
        """Those of some rows of the table, and of computed ones, whose results lie between two
        times, in microseconds since 1970 UTC. ``rows`` are all that have a time in between, open
        ones, too."""
        span = begin, end - 1
        return self._fold.affected.inside(rows, computed, span, only_final=only_final)

    def can_replay(self) -> Column:
        if self.places[-1].end is None:
            return F.lit(False)
        return is_result_final(self._assignment.end, self.gold.refresh(), self._declared)

    def left_out(self, document: Document) -> DataFrame:
        return self._replay.left_out(document)

    def late_pairs(self, rows: DataFrame) -> DataFrame:
        closed_through = GoldPayload.of(self.gold.refresh()).closed_through
        return self._pairs.of(rows, closed_through).where(F.col("_late").isNotNull())

    def _prepare_gold(self, held: State, group: Sequence[Commit], now: datetime) -> Prepared:
        """The commit of a group. Its counts are those of the merged rows, after the last shuffle;
        they are compared with the rows of the files, with those of the late table, and, if the
        operator knows how many results a row belongs to, with the rows of silver."""
        last = group[-1].state
        watermark = SilverPayload.of(last).watermarks.of(self._declared.time)
        payload = replace(GoldPayload.of(held), watermark=watermark)
        state = held.advanced_to(last.n, now, payload)
        files, opened = files_after(group), open_rows(self.gold)
        observed = Observation()
        rows = self._fold.aggregator.step(
            self._paired(files, held),
            self._gold_rows.of(opened.files),
            batch_constants(self._spark, now, self._threshold(watermark)),
            observed,
        )
        staged = stage(self.gold, state, rows, time_column=self._time_column)
        found = {name: int(count or 0) for name, count in observed.get.items()}
        pairs, late, final = (found[each] for each in ("pairs", "late", "final"))
        if self._pairs_per_row is not None:
            there = sum(file.rows for file in files) * self._pairs_per_row
            require_all(self.gold.name, state, pairs, there, "pairs of silver's rows were counted")
        counts = {"pairs": pairs, "folded": pairs - late, "late": late, "final": final}
        if gone := found.get(GONE, 0):
            counts[GONE] = gone
        longest = max(payload.longest, found.get("longest", 0))
        payload = replace(payload, open=found["rows"] - final, longest=longest)
        state = replace(state, payload=payload)
        state = state.counting(counts, changed=bool(counts["folded"] or final))
        return Prepared(self.gold, state, add=staged, remove=opened.live)

    def _prepare_late(
        self, held: State, group: Sequence[Commit], now: datetime, counted: int
    ) -> Prepared | None:
        """The commit of the late pairs of a group. ``counted`` is the number of all late pairs that
        gold has counted, with those of the group."""
        late = self.late.refresh()
        # It is ahead of gold if a crash came between the two commits of an earlier step.
        files, count = files_after(group, after=late.n), counted - late.total.get("late", 0)
        if not files or count <= 0:
            return None
        state = late.advanced_to(group[-1].state.n, now)
        closed_through = GoldPayload.of(held).closed_through
        is_small = count <= FEW and closed_through is None
        known = self._assignment.slack, self._assignment.times
        candidates = late_candidates(self._silver, files, *known) if is_small else None
        if candidates is not None:
            rows = self._late_rows(self._spark.createDataFrame(candidates), None).toArrow()
            staged = stage_arrow(self.late, state, rows, time_column=LATE_TIME)
        else:
            rows = self._late_rows(self._silver_rows.of(files), closed_through)
            staged = stage(self.late, state, rows, time_column=LATE_TIME, most_files=1)
        return Prepared(self.late, state.counting({"late": count}), staged)

    def _late_rows(self, silver: DataFrame, closed_through: int | None) -> DataFrame:
        pairs = self._pairs.of(silver, closed_through)
        return self._late_columns.of(pairs.where(F.col("_late").isNotNull()))

    def _paired(self, files: Sequence[DataFile], held: State) -> DataFrame:
        """The pairs of some silver files. ``_late`` says why a pair is late."""
        return self._pairs.of(self._silver_rows.of(files), GoldPayload.of(held).closed_through)

    def _threshold(self, watermark: int | None) -> int | None:
        return None if watermark is None else watermark - micros(self._declared.allowed_lateness)

    @cached_property
    def _late_columns(self) -> Projection:
        computed = {
            "late_seconds": self._pairs.late_seconds,
            "reason": F.col("_late"),
            REPLAYED: F.lit(None).cast("bigint"),
        }
        names = row_type(self.late).fieldNames()
        return Projection(*(computed.get(name, F.col(f"`{name}`")).alias(name) for name in names))
