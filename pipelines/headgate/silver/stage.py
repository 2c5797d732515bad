"""The silver stage: catches up with bronze, one commit per table and step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import islice

from pyspark.sql import Observation, SparkSession
from pyspark.sql.types import StructType

from headgate.declaration.kinds import BRONZE, QUARANTINE, SILVER
from headgate.declaration.model import SilverTable, Source
from headgate.operations.carrying_out import Operations
from headgate.operations.contract import Place
from headgate.silver.quarantine import QuarantineTransform, quarantine_type
from headgate.silver.transform import SilverTransform, silver_type
from headgate.tables.arrow import stage_arrow
from headgate.tables.catching_up import files_of, steps_between
from headgate.tables.frames import Rows, arrow_schema, row_type
from headgate.tables.log import Commit
from headgate.tables.payloads.bronze import BronzePayload
from headgate.tables.payloads.silver import SilverPayload
from headgate.tables.staging import Prepared, prepare_together, stage
from headgate.tables.table import TableOf
from headgate.tables.table_schema import TableSchema

QUARANTINE_TIME, SILVER_TIME = "ingested_at", "_event_time"


class SilverStage:
    """The only writer of ``quarantine/<source>`` and of the source's silver tables."""

    def __init__(
        self,
        spark: SparkSession,
        table: TableOf,
        source: Source,
        tables: Sequence[SilverTable],
    ) -> None:
        self._spark = spark
        self._source = source
        self._declared = {t.name: t for t in tables}
        self._transforms = {t.name: SilverTransform(t, source.record) for t in tables}
        self._quarantine_transform = QuarantineTransform(source)
        self.bronze = table(BRONZE.path(source.name)).reader()
        self.quarantine = table(QUARANTINE.path(source.name))
        self.silver = {t.name: table(SILVER.path(t.name)) for t in tables}
        self._bronze_rows = Rows(spark, self.bronze)

    def type_of(self, name: str) -> StructType:
        """The row type that a silver table is declared to have."""
        return silver_type(self._declared[name], self._source.record)

    @property
    def shapes(self) -> tuple[TableSchema, ...]:
        quarantine = arrow_schema(quarantine_type(self._source))
        return (
            TableSchema(self.quarantine, quarantine, QUARANTINE_TIME),
            *(
                TableSchema(t, arrow_schema(self.type_of(n)), SILVER_TIME)
                for n, t in self.silver.items()
            ),
        )

    def catch_up(
        self, upto: int, operations: Operations, now: datetime, most_steps: int | None = None
    ) -> None:
        """Absorb bronze up to batch ``upto``, and carry out each operation at its batch. Tables
        that are behind the others, because they are being rebuilt, take at most ``most_steps``
        steps per call.

        Raises CommitRefusedError, FencedError, LogGapError or UnknownOperationError.
        """
        at = {name: table.refresh().n for name, table in self.silver.items()}
        front = max(at.values(), default=0)
        for n in sorted(set(at.values()), reverse=True):
            names = [name for name in at if at[name] == n]
            places = self._places(names, quarantining=n == front)
            operations.carry_out(places, n, now)
            ahead = steps_between(self.bronze, n, operations.stops(upto))
            for group in ahead if n == front else islice(ahead, most_steps):
                self._absorb(names, group, now, quarantining=n == front)
                operations.carry_out(places, group[-1].state.n, now)

    def _places(self, names: Iterable[str], *, quarantining: bool) -> tuple[Place, ...]:
        sides = [(self.quarantine, QUARANTINE_TIME)] if quarantining else []
        tables = [*sides, *((self.silver[name], SILVER_TIME) for name in names)]
        return tuple(Place(table, Rows(self._spark, table).of, time) for table, time in tables)

    def has_absorbed(self, n: int) -> bool:
        """Whether every table is at batch ``n`` or beyond."""
        return all(table.refresh().n >= n for table in self.silver.values())

    def _absorb(
        self, names: Sequence[str], group: Sequence[Commit], now: datetime, *, quarantining: bool
    ) -> None:
        ready = prepare_together(
            *(partial(self._prepare_silver, name, group, now) for name in names),
            *([partial(self._prepare_quarantine, group, now)] if quarantining else []),
        )
        # Quarantine commits first: if a silver table has a batch, quarantine must have it too.
        for prepared in reversed(ready):
            prepared.commit()

    def _prepare_quarantine(self, group: Sequence[Commit], now: datetime) -> Prepared | None:
        held = self.quarantine.refresh()
        files = files_of(group, after=held.n)
        if not files:
            return None
        state = held.absorbing(group[-1].state.n, now)
        rows = self._quarantine_transform.quarantined(self.bronze.storage, files)
        if any(batch.state.from_n < held.n < batch.state.n for batch in group):
            # Silver is rebuilt after a vacuum. One commit then stands for many batches, and
            # quarantine has absorbed some of them already.
            rows = self._quarantine_transform.new(rows, self.quarantine)
        # A table of an older version has fewer columns.
        rows = rows.select(row_type(self.quarantine).fieldNames())
        staged = stage_arrow(self.quarantine, state, rows, time_column=QUARANTINE_TIME)
        if not staged:
            return None
        counted = state.counting({"quarantined": sum(f.rows for f in staged)})
        return Prepared(self.quarantine, counted, staged)

    def _prepare_silver(self, name: str, group: Sequence[Commit], now: datetime) -> Prepared | None:
        table = self.silver[name]
        held = table.refresh()
        last = group[-1].state
        if held.n >= last.n:
            return None
        files = files_of(group, after=held.n)
        payload = replace(SilverPayload.of(held), watermark=BronzePayload.of(last).watermark)
        state = held.absorbing(last.n, now, payload)
        observed = Observation()
        rows = self._transforms[name].conformed(self._bronze_rows.of(files), observed)
        staged = stage(table, state, rows, time_column=SILVER_TIME)
        counts = {k: int(v or 0) for k, v in observed.get.items()} if files else {}
        return Prepared(table, state.counting(counts), staged)
