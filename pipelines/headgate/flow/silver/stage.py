"""The silver stage: catches up with bronze, one commit per table and step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import islice

import pyarrow as pa
from pyspark.sql import Observation, SparkSession
from pyspark.sql.types import StructType

from headgate.declaration.kinds import BRONZE, QUARANTINE, REJECTED, SILVER
from headgate.declaration.model import SilverTable, Source
from headgate.declaration.names import IDENTITY, POSITION, SILVER_POSITION
from headgate.declaration.suites.model import Suite, count_key
from headgate.declaration.types import Struct
from headgate.flow.operations.carrying_out import Operations
from headgate.flow.operations.stage_table import StageTable
from headgate.flow.silver.quarantine import QuarantineTransform, new_rows, quarantine_type
from headgate.flow.silver.rejected import RejectedRows, divided_files, rejected_type, rules_broken
from headgate.flow.silver.replacements import Replacements
from headgate.flow.silver.rules import require_below_ceilings
from headgate.flow.silver.transform import REJECTED as IS_REJECTED
from headgate.flow.silver.transform import SilverTransform, depends_on_values_alone, silver_type
from headgate.lake.tables.arrow import stage_arrow
from headgate.lake.tables.data_file import DataFile
from headgate.lake.tables.frames import TableRows, arrow_schema, micros, row_type, struct_type
from headgate.lake.tables.history import files_after, steps_between
from headgate.lake.tables.log import Commit
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.payloads.rejected import RejectedPayload
from headgate.lake.tables.payloads.silver import SilverPayload, records_in, rows_in
from headgate.lake.tables.replay import positions_of
from headgate.lake.tables.row_counts import require_all, require_side_rows
from headgate.lake.tables.staging import Prepared, prepare_together, stage
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table, TableOf
from headgate.lake.tables.table_schema import TableSchema

QUARANTINE_TIME, REJECTED_TIME, SILVER_TIME = "ingested_at", "event_time", "_event_time"


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
        self._has_ceilings = True
        self._replays: frozenset[int] = frozenset()
        self._declared = {t.name: t for t in tables}
        self._transforms = {t.name: SilverTransform(t, source.record) for t in tables}
        self._quarantine_transform = QuarantineTransform(source)
        self.bronze = table(BRONZE.path(source.name)).reader()
        self.quarantine = table(QUARANTINE.path(source.name))
        self.silver = {t.name: table(SILVER.path(t.name)) for t in tables}
        with_suite = (t.name for t in tables if t.suite)
        self.rejected = {name: table(REJECTED.path(name)) for name in with_suite}
        record = Struct.of(source.record.types)
        self._bronze_rows = TableRows(spark, self.bronze, declared=struct_type({"record": record}))
        reach = source.record.one_copy_within
        within = None if reach is None else micros(reach)
        self._replacements = {
            name: Replacements(
                *(spark, self.bronze, self.silver[name], rejected, within),
                by_value=depends_on_values_alone(source, self._declared[name]),
            )
            for name, rejected in self.rejected.items()
        }

    def type_of(self, name: str) -> StructType:
        """The row type that a silver table is declared to have."""
        return silver_type(self._declared[name], self._source.record)

    @property
    def shapes(self) -> tuple[TableSchema, ...]:
        quarantine = arrow_schema(quarantine_type(self._source))
        return (
            TableSchema(self.quarantine, quarantine, QUARANTINE_TIME),
            *(
                TableSchema(t, arrow_schema(rejected_type(self._source)), REJECTED_TIME)
                for t in self.rejected.values()
            ),
            *(
                TableSchema(t, arrow_schema(self.type_of(n)), SILVER_TIME)
                for n, t in self.silver.items()
            ),
        )

    def catch_up(
        self, upto: int, operations: Operations, now: datetime, most_steps: int | None = None
    ) -> None:
        """Process bronze up to batch ``upto``, and carry out each operation at its batch. Tables
        that are behind the others, because they are being rebuilt, take at most ``most_steps``
        steps per call.

        Raises CommitRefusedError, FencedError, LogGapError or UnknownOperationError.
        """
        self.bronze.refresh()
        self._replays = operations.replays
        boundaries = {end for n in self._replays for end in (n - 1, n)}
        watermarks = operations.watermarks
        at = {name: table.refresh().n for name, table in self.silver.items()}
        front = max(at.values(), default=0)
        for n in sorted(set(at.values()), reverse=True):
            names = [name for name in at if at[name] == n]
            places = self._places(names, quarantining=n == front)
            operations.carry_out(places, n, now)
            decided = (self._ahead(name) for name in names)
            ends = {*decided, *boundaries, *operations.read_by_logs}
            stops = sorted({*operations.stops(upto), *(end for end in ends if n < end < upto)})
            ahead = steps_between(self.bronze, n, stops, watermarks, self._rows_per_step(names))
            for group in ahead if n == front else islice(ahead, most_steps):
                self._process(names, group, now, quarantining=n == front)
                operations.carry_out(places, group[-1].state.n, now)

    def _rows_per_step(self, names: Iterable[str]) -> int | None:
        """With a rule that stops the stream at a share of a batch's rows, each batch is a step.
        Otherwise a restart after the stop could hide a bad batch among the batches after it."""
        suites = (self._declared[name].suite for name in names)
        rules = (rule for suite in suites if suite is not None for rule in suite.rules)
        return 0 if any(rule.above is not None for rule in rules) else None

    def process_again(self, batches: Commit, replays: Collection[int], now: datetime) -> None:
        """Process batches that other tables have processed before, in one step, without quarantine.
        Rules with the action ``stop`` do not refuse them, because the batches were accepted before.
        ``replays`` are the batch ids of replays.

        Raises CommitRefusedError.
        """
        self._has_ceilings, self._replays = False, frozenset(replays)
        self._process([*self.silver], [batches], now, quarantining=False)

    def _places(self, names: Iterable[str], *, quarantining: bool) -> tuple[StageTable, ...]:
        sides = [(self.quarantine, QUARANTINE_TIME)] if quarantining else []
        sides += [(self.rejected[n], REJECTED_TIME) for n in names if n in self.rejected]
        tables = [*sides, *((self.silver[name], SILVER_TIME) for name in names)]
        return tuple(
            StageTable(table, TableRows(self._spark, table).of, time) for table, time in tables
        )

    def has_processed(self, n: int) -> bool:
        """Whether every table is at batch ``n`` or beyond."""
        return all(table.refresh().n >= n for table in self.silver.values())

    def _process(
        self, names: Sequence[str], group: Sequence[Commit], now: datetime, *, quarantining: bool
    ) -> None:
        ready = prepare_together(
            *(partial(self._prepare_silver, name, group, now) for name in names),
            *([partial(self._prepare_quarantine, group, now)] if quarantining else []),
        )
        if quarantining:
            self._require_quarantined(ready)
        # Quarantine commits first: if a silver table has a batch, quarantine must have it too.
        for prepared in reversed(ready):
            prepared.commit()

    def _require_quarantined(self, ready: Sequence[Prepared]) -> None:
        """Arrow has selected the rows of quarantine, and Spark has counted them for each silver
        table. Raises MiscountedError if the numbers differ."""
        there = {p.table.name: p.state for p in ready}.get(
            self.quarantine.name, self.quarantine.state
        )
        for prepared in ready:
            if prepared.table is not self.quarantine:
                require_side_rows(
                    *(prepared.table.name, prepared.state, "quarantined"),
                    *(self.quarantine.name, there),
                )

    def _prepare_quarantine(self, group: Sequence[Commit], now: datetime) -> Prepared | None:
        held = self.quarantine.refresh()
        files = files_after(group, after=held.n)
        if not files:
            return None
        state = held.advanced_to(group[-1].state.n, now)
        rows = self._quarantine_transform.quarantined(self.bronze.storage, files)
        if _is_within(group, held.n):
            rows = new_rows(rows, self.quarantine, POSITION)
        state = state.counting({"quarantined": len(rows)})
        return _side(self.quarantine, state, rows, QUARANTINE_TIME)

    def _prepare_silver(self, name: str, group: Sequence[Commit], now: datetime) -> Prepared | None:
        table = self.silver[name]
        held = table.refresh()
        last = group[-1].state
        if held.n >= last.n:
            return None
        files = files_after(group, after=held.n)
        payload = _reached(SilverPayload.of(held), BronzePayload.of(last))
        state = held.advanced_to(last.n, now, payload)
        if (decided := self._decided(name, last.n)) is None:
            transform, suite = self._transforms[name], self._declared[name].suite
        else:
            suite, declared = decided, replace(self._declared[name], suite=decided)
            transform = SilverTransform(declared, self._source.record)
        observed = Observation()
        rows = transform.conformed(self._bronze_rows.of(files), observed)
        divided_by = IS_REJECTED if suite else None
        staged = stage(table, state, rows, time_column=SILVER_TIME, divided_by=divided_by)
        counts = {k: int(v or 0) for k, v in observed.get.items()} if files else {}
        there = sum(file.rows for file in files)
        require_all(table.name, state, records_in(counts), there, "rows of bronze were counted")
        if "items" in counts:
            items = counts["items"]
            require_all(table.name, state, rows_in(counts), items, "items were counted")
        if suite is None:
            return Prepared(table, state.counting(counts), staged)
        state = replace(state, payload=replace(payload, suite=suite.digest))
        kept, apart = divided_files(staged)
        broken = rules_broken(table.storage, staged)
        if self._has_ceilings and not self._is_asked_for(held.n, last):
            require_below_ceilings(name, suite, broken, sum(file.rows for file in staged))
        replaced = self._replaced(name, state, transform, files, (kept, apart), counts)
        broken += rules_broken(table.storage, replaced)
        counts |= {count_key(rule): count for rule, count in broken.items()}
        state = state.counting(counts)
        side = self._prepare_rejected(
            name, suite, apart, group, now, state.total.get("rejected", 0)
        )
        prepared = Prepared(table, state, [*kept, *replaced], side=side)
        prepared.require_side_rows("rejected", self.rejected[name])
        return prepared

    def _replaced(
        self,
        name: str,
        state: State,
        transform: SilverTransform,
        files: Sequence[DataFile],
        staged: tuple[Sequence[DataFile], Sequence[DataFile]],
        counts: dict[str, int],
    ) -> Sequence[DataFile]:
        """Stage the rows that take the place of rejected ones, and correct ``counts``. Returns the
        files."""
        if not counts.get("duplicate"):
            return ()
        rows = self._replacements[name].of(
            *(transform, self._bronze_rows.of, files), *staged, replays=self._replays
        )
        if not len(rows):
            return ()
        rows = rows.cast(arrow_schema(row_type(self.silver[name])))
        records = len(set(positions_of(rows, tuple(SILVER_POSITION))))
        counts["duplicate"] -= records
        counts["silver"] += len(rows)
        counts["replaced"] = len(rows)
        if "items" in counts:
            counts["exploded"] += records
            counts["items"] += len(rows)
            counts["replacing"] = records
        return stage_arrow(self.silver[name], state, rows, time_column=SILVER_TIME)

    def _is_asked_for(self, after: int, last: State) -> bool:
        """Whether a step after batch ``after`` ends with a replay, which is a step of its own, or
        has a batch of a load. A person has requested these, so rules with the action ``stop`` do
        not refuse them."""
        loads = BronzePayload.of(last).loads
        return last.n in self._replays or any(each.n > after for each in loads)

    def _ahead(self, name: str) -> int:
        """The batch id of a table's rejected rows if it is ahead of the table, because a crash came
        between the two commits of a step; otherwise 0."""
        if name not in self.rejected:
            return 0
        n = self.rejected[name].refresh().n
        return n if n > self.silver[name].state.n else 0

    def _decided(self, name: str, upto: int) -> Suite | None:
        """The suite that has already decided the rows up to a batch id; it may differ from the
        declared suite. None if the declared suite decides."""
        if upto > self._ahead(name):
            return None
        return Suite.decode(RejectedPayload.of(self.rejected[name].state).suite)

    def _prepare_rejected(
        self,
        name: str,
        suite: Suite,
        apart: Sequence[DataFile],
        group: Sequence[Commit],
        now: datetime,
        counted: int,
    ) -> Prepared | None:
        """The commit of a table's rejected rows, which silver's query has written to files of their
        own. ``counted`` is the number of all rejected rows that silver has counted."""
        table = self.rejected[name]
        held = table.state
        files = files_after(group, after=held.n)
        if not files or not apart:
            return None
        state = held.advanced_to(group[-1].state.n, now, RejectedPayload(suite.encode()))
        bronze, silver = self.bronze.storage, self.silver[name].storage
        rows = RejectedRows(self._source, suite).of(silver, apart, bronze, files)
        if _is_within(group, held.n):
            rows = new_rows(rows, table, IDENTITY)
        state = state.counting({"rejected": counted - held.total.get("rejected", 0)})
        return _side(table, state, rows, REJECTED_TIME)


def _reached(silver: SilverPayload, bronze: BronzePayload) -> SilverPayload:
    """The payload of silver at the watermarks of bronze."""
    return replace(silver, watermark=bronze.watermark, arrival_watermark=bronze.arrival_watermark)


def _side(table: Table, state: State, rows: pa.Table, time_column: str) -> Prepared | None:
    """The commit of rows of a side table; None if there are none."""
    if not len(rows):
        return None
    return Prepared(table, state, stage_arrow(table, state, rows, time_column=time_column))


def _is_within(group: Sequence[Commit], n: int) -> bool:
    """Whether one commit of a group has batches before and after a batch id. This is so if a table
    is rebuilt after a vacuum, and its side table has processed some of these batches already."""
    return any(batch.state.from_n < n < batch.state.n for batch in group)
