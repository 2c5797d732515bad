"""The silver stage: catches up with bronze, one commit per table and step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from pyspark.sql import Column, Observation, SparkSession
from pyspark.sql import functions as F

from headgate.silver.conform import conform, silver_type
from headgate.silver.quarantine import quarantine_type, quarantined
from headgate.spec.model import SilverTable, Source
from headgate.storage.files import Storage
from headgate.storage.layout import Layout
from headgate.tables.catching_up import files_of, steps
from headgate.tables.frames import arrow_schema, read_files
from headgate.tables.history import Batch
from headgate.tables.staging import stage
from headgate.tables.state import State, add_counts, commit_time
from headgate.tables.table import Table

OUTCOMES = ("silver", "filtered", "quarantined", "duplicate")


class SilverStage:
    """The only writer of ``quarantine/<source>`` and of the source's silver tables."""

    def __init__(
        self,
        spark: SparkSession,
        storage: Storage,
        pipeline: str,
        source: Source,
        tables: Sequence[SilverTable],
    ) -> None:
        self._spark = spark
        self._source = source
        self._declared = {t.name: t for t in tables}
        self.bronze = Table(storage, Layout.bronze(source.name), pipeline=pipeline)
        self.quarantine = Table(storage, Layout.quarantine(source.name), pipeline=pipeline)
        self.silver = {
            t.name: Table(storage, Layout.silver(t.name), pipeline=pipeline) for t in tables
        }

    @property
    def tables(self) -> tuple[Table, ...]:
        return (self.quarantine, *self.silver.values())

    def create(self, definition: str) -> None:
        quarantine = arrow_schema(quarantine_type())
        self.quarantine.create(quarantine, definition, time_column="ingested_at")
        for name, table in self.silver.items():
            type_ = silver_type(self._declared[name], self._source.record)
            table.create(arrow_schema(type_), definition, time_column="_event_time")

    def catch_up(self, upto: int, now: datetime) -> Mapping[str, State]:
        """Absorb bronze up to batch ``upto``; the states of the silver tables afterwards.

        Raises CommitRefusedError, FencedError or LogGapError.
        """
        held = {name: table.refresh() for name, table in self.silver.items()}
        lowest = min(state.n for state in held.values())
        at = commit_time(now)
        for group in steps(self.bronze, lowest, upto):
            # Quarantine first: a silver table at n promises that quarantine is at n too.
            self._quarantine(group, lowest, at)
            for name in self.silver:
                held[name] = self._conform(name, group, at)
            lowest = group[-1].state.n
        return held

    def _quarantine(self, group: Sequence[Batch], lowest: int, at: int) -> None:
        held = self.quarantine.refresh()
        files = files_of(group, after=max(held.n, lowest))
        if not files:
            return
        n = group[-1].state.n
        state = replace(held, kind="data", from_n=held.n, n=n, at=at)
        rows = quarantined(read_files(self._spark, self.bronze, files))
        staged = stage(self.quarantine, state, rows, time_column="ingested_at")
        if staged:
            counts = {"quarantined": sum(f.rows for f in staged)}
            state = replace(state, batch=counts, total=add_counts(held.total, counts))
            self.quarantine.commit(state, add=staged)

    def _conform(self, name: str, group: Sequence[Batch], at: int) -> State:
        table, declared = self.silver[name], self._declared[name]
        held = table.refresh()
        last = group[-1].state
        if held.n >= last.n:
            return held
        files = files_of(group, after=held.n)
        state = replace(held, kind="data", from_n=held.n, n=last.n, at=at, closing=last.closing)
        observed = Observation()
        outcomes = conform(read_files(self._spark, self.bronze, files), declared)
        counted = outcomes.observe(observed, *_counted())
        columns = silver_type(declared, self._source.record).fieldNames()
        rows = counted.where("_outcome = 'silver'").select(*(F.col(f"`{c}`") for c in columns))
        staged = stage(table, state, rows, time_column="_event_time")
        counts = {k: int(v or 0) for k, v in observed.get.items()} if files else {}
        state = replace(state, batch=counts, total=add_counts(held.total, counts))
        return table.commit(state, add=staged)


def _counted() -> list[Column]:
    return [F.count(F.when(F.col("_outcome") == o, 1)).alias(o) for o in OUTCOMES]
