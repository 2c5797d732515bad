"""The silver stage: catches up with bronze, one commit per table and step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from pyspark.sql import Observation, SparkSession

from headgate.silver.conform import Conforming, silver_type
from headgate.silver.quarantine import Quarantining, quarantine_type
from headgate.spec.model import SilverTable, Source
from headgate.storage.files import Storage
from headgate.storage.layout import Layout
from headgate.tables.arrow import stage_arrow
from headgate.tables.catching_up import files_of, steps
from headgate.tables.frames import Rows, arrow_schema
from headgate.tables.history import Batch
from headgate.tables.staging import Prepared, prepare_together, stage
from headgate.tables.state import commit_time
from headgate.tables.table import Table


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
        self._source = source
        self._declared = {t.name: t for t in tables}
        self._conforming = {t.name: Conforming(t, source.record) for t in tables}
        self._quarantining = Quarantining(source)
        self.bronze = Table(storage, Layout.bronze(source.name), pipeline=pipeline)
        self.quarantine = Table(storage, Layout.quarantine(source.name), pipeline=pipeline)
        self.silver = {
            t.name: Table(storage, Layout.silver(t.name), pipeline=pipeline) for t in tables
        }
        self._bronze_rows = Rows(spark, self.bronze)

    @property
    def tables(self) -> tuple[Table, ...]:
        return (self.quarantine, *self.silver.values())

    def create(self, definition: str) -> None:
        quarantine = arrow_schema(quarantine_type(self._source))
        self.quarantine.create(quarantine, definition, time_column="ingested_at")
        for name, table in self.silver.items():
            type_ = silver_type(self._declared[name], self._source.record)
            table.create(arrow_schema(type_), definition, time_column="_event_time")

    def catch_up(self, upto: int, now: datetime) -> None:
        """Absorb bronze up to batch ``upto``.

        Raises CommitRefusedError, FencedError or LogGapError.
        """
        lowest = min(table.refresh().n for table in self.silver.values())
        at = commit_time(now)
        for group in steps(self.bronze, lowest, upto):
            ready = prepare_together(
                *(partial(self._prepare_silver, name, group, at) for name in self.silver),
                partial(self._prepare_quarantine, group, lowest, at),
            )
            # Quarantine first: a silver table at n promises that quarantine is at n too.
            for prepared in reversed(ready):
                prepared.commit()
            lowest = group[-1].state.n

    def _prepare_quarantine(self, group: Sequence[Batch], lowest: int, at: int) -> Prepared | None:
        held = self.quarantine.refresh()
        files = files_of(group, after=max(held.n, lowest))
        if not files:
            return None
        state = replace(held, kind="data", from_n=held.n, n=group[-1].state.n, at=at)
        rows = self._quarantining.quarantined(self.bronze.storage, files)
        staged = stage_arrow(self.quarantine, state, rows, time_column="ingested_at")
        if not staged:
            return None
        counted = state.counting({"quarantined": sum(f.rows for f in staged)})
        return Prepared(self.quarantine, counted, staged)

    def _prepare_silver(self, name: str, group: Sequence[Batch], at: int) -> Prepared | None:
        table = self.silver[name]
        held = table.refresh()
        last = group[-1].state
        if held.n >= last.n:
            return None
        files = files_of(group, after=held.n)
        state = replace(held, kind="data", from_n=held.n, n=last.n, at=at, closing=last.closing)
        observed = Observation()
        rows = self._conforming[name].conformed(self._bronze_rows.of(files), observed)
        staged = stage(table, state, rows, time_column="_event_time")
        counts = {k: int(v or 0) for k, v in observed.get.items()} if files else {}
        return Prepared(table, state.counting(counts), staged)
