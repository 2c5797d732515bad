"""Computes a range of gold tables from bronze, beside the live stream, and compares.

The live tables are not written. The silver stage fills scratch tables below the folder of the
backfill; gold is folded from them in one pass (``flow.gold.recomputing``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import DataFrame, SparkSession

from headgate.declaration.contracts.operator import columns_of, key_of
from headgate.declaration.kinds import BRONZE, SILVER
from headgate.declaration.model import GoldTable, Pipeline
from headgate.failpoints import failpoint
from headgate.flow.gold.append.stage import AppendStage
from headgate.flow.gold.fold_stage import FoldStage
from headgate.flow.gold.late_replay import LatePairSelection, is_waiting
from headgate.flow.gold.recomputing import RecomputedResults
from headgate.flow.gold.rollup.stage import RollupStage
from headgate.flow.gold.schema import compared_columns, gold_type, rows_of_both
from headgate.flow.gold.stage import gold_stage_of
from headgate.flow.operations.backfill import Patch, file_digest
from headgate.flow.silver.stage import SilverStage
from headgate.history.backfill.comparing import Comparison
from headgate.history.backfill.errors import NotBackfilledError
from headgate.history.backfill.folders import SCRATCH
from headgate.history.backfill.plan import BackfillPlan, BackfillTarget
from headgate.history.backfill.report import TableReport
from headgate.history.backfill.selection import BronzeStep
from headgate.lake.storage.globs import literal_pattern
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.frames import TableRows
from headgate.lake.tables.live_files import overlapping_files
from headgate.lake.tables.log import Commit
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.row_changes import RowChanges
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table, TableOf


@dataclass(frozen=True)
class ComparedTable:
    """The report about a table, and its patch; None if nothing differs."""

    report: TableReport
    patch: Patch | None


def computable_stage(
    spark: SparkSession, table: TableOf, declared: GoldTable, above: GoldTable | None = None
) -> FoldStage | RollupStage | AppendStage:
    """The stage of a gold table; ``above`` is the gold table that a rollup reads. Raises
    NotBackfilledError if it cannot compute its rows again."""
    stage = gold_stage_of(spark, table, declared, above)
    if not isinstance(stage, FoldStage | RollupStage | AppendStage):
        raise NotBackfilledError(
            f"gold.{declared.name}: its operator {declared.kind} has a stage of its own, and "
            "cannot be computed for a range of time",
            remedy="leave the table out",
        )
    return stage


class BackfillComputation:
    """``declared`` is the declaration that is used, ``folder`` the folder of the backfill in the
    pipeline's storage."""

    def __init__(
        self,
        spark: SparkSession,
        layout: Layout,
        declared: Pipeline,
        planned: BackfillPlan,
        folder: str,
    ) -> None:
        self._spark, self._layout, self._declared = spark, layout, declared
        self._planned, self._folder = planned, folder
        self._scratch = layout.storage.at(f"{folder}/{SCRATCH}")

    def run(self, now: datetime) -> Iterator[ComparedTable]:
        """The report and patch of each table, in the order of the plan.

        Raises NotBackfilledError, LogGapError, DamagedFileError.
        """
        names = [target.table for target in self._planned.targets]
        tables = [self._declared.gold[name] for name in names]
        for silver in dict.fromkeys(table.silver for table in tables):
            self._make_silver(silver, now)
            failpoint("backfill.silver_made")
        for table, target in zip(tables, self._planned.targets, strict=True):
            yield self._compared(table, target, now)
            failpoint("backfill.compared")

    def _table(self, path: str) -> Table:
        storage = self._layout.storage if path.startswith(BRONZE.path("")) else self._scratch
        return Table(storage, path, pipeline=self._declared.name)

    def _make_silver(self, name: str, now: datetime) -> None:
        silver = self._declared.silver[name]
        source = self._declared.sources[silver.source]
        stage = SilverStage(self._spark, self._table, source, [silver])
        for shape in stage.shapes:
            shape.create(self._declared.definitions.get(shape.table.name, ""))
        for step in self._planned.steps[name]:
            stage.process_again(_batches(step), self._planned.replays[name], now)

    def _compared(
        self, declared: GoldTable, target: BackfillTarget, now: datetime
    ) -> ComparedTable:
        stage = computable_stage(self._spark, self._table, declared)
        assert isinstance(stage, FoldStage)  # a backfill leaves other tables out
        type_, window = gold_type(declared), tuple(columns_of(declared))
        by = tuple(each.name for each in declared.by)
        key = key_of(declared)
        values = compared_columns(declared)
        comparison = Comparison(key, values, type_)
        old, new = self._both_sides(stage, declared, target, now)
        path = f"compared-{declared.name}"
        comparison.of(old, new).write.parquet(self._scratch.uri(path))
        compared = self._spark.read.parquet(literal_pattern(self._scratch.uri(path)))
        counts = comparison.counts(compared)
        report = TableReport(
            table=declared.name,
            n=target.n,
            equal=counts.rows["equal"],
            changed=counts.rows["changed"],
            new=counts.rows["new"],
            gone=counts.rows["gone"],
            windows=counts.windows,
            windows_equal=counts.windows_equal,
            live=counts.live,
            backfilled=counts.backfilled,
            columns=comparison.columns(compared, counts),
            rows=RowChanges(
                *(window, by, values),
                rows=comparison.rows(compared, counts.rows),
                total=counts.differing,
            ),
            earlier=target.earlier,
        )
        if counts.span is None:
            return ComparedTable(report, None)
        path, digest = self._write_patch(comparison.patch(compared), declared.name)
        made = target.definition, target.operation, counts.span
        return ComparedTable(report, Patch(path, digest, *made))

    def _both_sides(
        self, stage: FoldStage, declared: GoldTable, target: BackfillTarget, now: datetime
    ) -> tuple[DataFrame, ...]:
        """The final rows in the range that the live table has, and those that are computed."""
        wanted = target.range
        replays = tuple((n, LatePairSelection.of(said), final) for n, said, final in target.replays)
        meant = RecomputedResults(
            wanted.begin, wanted.end, target.final_through, target.drains, replays
        )
        silver = self._table(SILVER.path(declared.silver))
        silver.refresh()
        found = overlapping_files(silver.handle, "_event_time", target.read)
        files = tuple(file for file in found if file.n <= target.n)
        computed = self._spark.createDataFrame([], gold_type(declared))
        if files:
            late = TableRows(self._spark, target.late).of(target.late_files)
            waiting = late.where(is_waiting(target.operation))
            computed = stage.computed_rows(files, meant, waiting, now)
        read = TableRows(self._spark, target.gold, declared=gold_type(declared))
        both = rows_of_both(read, target.files), computed
        return stage.inside(*both, wanted.begin, wanted.end, only_final=True)

    def _write_patch(self, rows: DataFrame, table: str) -> tuple[str, str]:
        """Write a patch as one file. Returns its path and the digest of its bytes."""
        home, folder = self._layout.storage, f"{self._folder}/{table}.patch"
        rows.coalesce(1).write.parquet(home.uri(folder))
        (path,) = (s.path for s in home.list(folder) if s.path.endswith(".parquet"))
        digest = file_digest(home, path)
        assert digest is not None
        return path, digest


def _batches(step: BronzeStep) -> Commit:
    """One commit for all batches of a step. It has no watermark, because no stage reads it."""
    state = State(BronzePayload(), kind="data", from_n=step.after, n=step.upto)
    return Commit(0, state, step.files)
