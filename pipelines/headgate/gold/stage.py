"""The gold stage of one table: late pairs aside, the rest folded into the open windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from headgate.gold.folding import Folding, moment
from headgate.gold.schema import FINAL, gold_type, late_type
from headgate.gold.windows import lateness, with_windows
from headgate.spec.model import GoldTable
from headgate.storage.files import Storage
from headgate.storage.layout import Layout
from headgate.tables.catching_up import files_of, steps
from headgate.tables.frames import arrow_schema, micros, read_files, row_type
from headgate.tables.history import Batch, partition_files
from headgate.tables.staging import stage
from headgate.tables.state import State, add_counts, commit_time
from headgate.tables.table import DataFile, Table


class GoldStage:
    """The only writer of ``gold/<table>`` and ``late/<table>``."""

    def __init__(
        self, spark: SparkSession, storage: Storage, pipeline: str, declared: GoldTable
    ) -> None:
        self._spark = spark
        self._declared = declared
        self._folding = Folding(declared)
        self.silver = Table(storage, Layout.silver(declared.silver), pipeline=pipeline)
        self.late = Table(storage, Layout.late(declared.name), pipeline=pipeline)
        self.gold = Table(
            storage, Layout.gold(declared.name), pipeline=pipeline, partition_by=[FINAL]
        )

    @property
    def tables(self) -> tuple[Table, ...]:
        return (self.late, self.gold)

    def create(self, definition: str) -> None:
        """Make the tables; the silver table must be there."""
        gold, late = gold_type(self._declared), late_type(row_type(self.silver))
        self.gold.create(arrow_schema(gold), definition, time_column="window_start")
        self.late.create(arrow_schema(late), definition, time_column="_event_time")

    def catch_up(self, upto: int, now: datetime) -> State:
        """Absorb silver up to bronze batch ``upto``; the gold table's state afterwards.

        Raises CommitRefusedError, FencedError or LogGapError.
        """
        held = self.gold.refresh()
        for group in steps(self.silver, held.n, upto):
            held = self._absorb(group, now)
        return held

    def _absorb(self, group: Sequence[Batch], now: datetime) -> State:
        held = self.gold.refresh()
        last = group[-1].state
        at = commit_time(now)
        state = replace(
            held, kind="data", from_n=held.n, n=last.n, closing=last.closing, at=at, batch={}
        )
        opened = self.open_files()
        observed = Observation()
        files = files_of(group)
        pairs = self._pairs(files, held.closed_through)
        counted = pairs.observe(observed, *_counted())
        rows = self._folding.folded(
            self._folding.partial_states(counted.where("_late is null")),
            self._folding.open_states(self.rows(opened)),
            moment(self._spark, now, self._threshold(last.closing)),
        )
        staged = stage(self.gold, state, rows, time_column="window_start")
        counts = {k: int(v or 0) for k, v in observed.get.items()}
        counts["final"] = sum(f.rows for f in staged if f.partition[FINAL] == "true")
        # Late before gold: a gold table at n promises that its late table is at n too.
        self._commit_late(group, held, pairs, counts["late"], at)
        state = replace(state, batch=counts, total=add_counts(held.total, counts))
        return self.gold.commit(state, add=staged, remove=opened)

    def open_files(self) -> tuple[DataFile, ...]:
        return partition_files(self.gold.handle, FINAL, False)

    def rows(self, files: Sequence[DataFile]) -> DataFrame:
        return read_files(self._spark, self.gold, files)

    def _pairs(self, files: Sequence[DataFile], closed_through: int | None) -> DataFrame:
        """The (row, window) pairs of some silver files, ``_late`` saying why one is late."""
        rows = read_files(self._spark, self.silver, files)
        if self._declared.where:
            rows = rows.where(f"({self._declared.where})")
        pairs = with_windows(rows, self._declared.window)
        return pairs.withColumn("_late", lateness(self._declared, closed_through))

    def _threshold(self, closing: int | None) -> int | None:
        return None if closing is None else closing - micros(self._declared.allowed_lateness)

    def _commit_late(
        self, group: Sequence[Batch], held: State, pairs: DataFrame, expected: int, at: int
    ) -> None:
        late = self.late.refresh()
        n = group[-1].state.n
        if late.n >= n or not expected:
            return
        if late.n > held.n:
            # A crash came between the two commits of an earlier, shorter step.
            pairs = self._pairs(files_of(group, after=late.n), held.closed_through)
        state = replace(late, kind="data", from_n=late.n, n=n, at=at)
        staged = stage(
            self.late, state, _late_rows(pairs, self._declared), time_column="_event_time"
        )
        if staged:
            counts = {"late": sum(f.rows for f in staged)}
            state = replace(state, batch=counts, total=add_counts(late.total, counts))
            self.late.commit(state, add=staged)


def _counted() -> list[Column]:
    folded_count = F.count(F.when(F.col("_late").isNull(), 1))
    return [
        F.count(F.lit(1)).alias("pairs"),
        folded_count.alias("folded"),
        F.count("_late").alias("late"),
    ]


def _late_rows(pairs: DataFrame, table: GoldTable) -> DataFrame:
    limit = F.unix_micros("window_end") + F.lit(micros(table.allowed_lateness))
    seconds = (F.unix_micros("_clock") - limit) / F.lit(1_000_000.0)
    late = pairs.where("_late is not null").withColumn("late_seconds", seconds)
    return late.withColumnRenamed("_late", "reason")
