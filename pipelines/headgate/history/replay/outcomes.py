"""The outcomes of corrected records: the engine reads and validates them, and writes nothing.

Needs a Spark session.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from headgate.declaration.kinds import BRONZE
from headgate.declaration.model import Pipeline, SilverTable
from headgate.declaration.names import POSITION, SILVER_POSITION, WARNINGS
from headgate.flow.bronze.copies import CorrectedCopies
from headgate.flow.bronze.stage import BronzeStage
from headgate.flow.gold.stage import GoldStage, gold_stage_of
from headgate.flow.silver.copies import Copy, candidates, first_copies
from headgate.flow.silver.transform import REJECTED as IS_REJECTED
from headgate.flow.silver.transform import SilverTransform
from headgate.history.replay.corrections import CorrectedRecord
from headgate.history.replay.refused import RefusedRecords
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.replay import RecordPosition, positions_of
from headgate.lake.tables.table import Table

AFTER_ALL = 1 << 62
"""An offset after those of all existing copies."""
_AT = tuple(SILVER_POSITION)
OutcomeKind = Literal["silver", "invalid", "rejected", "filtered", "known", "other id"]
"""``known``: the tables have decided on this record already. ``other id``: the corrected record has
another id."""


@dataclass(frozen=True)
class ReplayOutcome:
    """What would happen to a corrected record. ``tables`` are the silver tables that would take it,
    ``late`` the gold tables with a result that it is late for. ``why`` is the reason if no table
    would take it."""

    corrected: CorrectedRecord
    kind: OutcomeKind
    tables: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    why: str = ""

    @property
    def passes(self) -> bool:
        return bool(self.tables)


def replay_outcomes(
    spark: SparkSession,
    layout: Layout,
    pipeline: Pipeline,
    records: RefusedRecords,
    corrected: Sequence[CorrectedRecord],
    copies: CorrectedCopies,
) -> list[ReplayOutcome]:
    """The outcome of each corrected record, in order."""
    source = records.source
    bronze = Table(layout.storage, BRONZE.path(source.name), pipeline=pipeline.name)
    bronze.refresh()
    found = _Outcomes(records, corrected)
    table = partial(Table, layout.storage, pipeline=pipeline.name)
    gold = {name: gold_stage_of(spark, table, each) for name, each in pipeline.gold.items()}
    tables = [t for t in pipeline.silver.values() if t.source == source.name]
    with BronzeStage(spark, bronze, source).decoded(copies) as rows:
        found.read(rows)
        for silver in tables:
            readers = {n: gold[n] for n, g in pipeline.gold.items() if g.silver == silver.name}
            found.validate(silver, rows, SilverTransform(silver, source.record), readers)
    return list(found.outcomes())


class _Outcomes:
    def __init__(self, records: RefusedRecords, corrected: Sequence[CorrectedRecord]) -> None:
        self._records = records
        self._corrected = {records.origin(each.position): each for each in corrected}
        self._invalid: dict[RecordPosition, str] = {}
        self._ids: dict[RecordPosition, str | None] = {}
        self._duplicates: dict[RecordPosition, Copy] = {}
        self._late: dict[tuple[str, str], frozenset[RecordPosition]] = {}
        self._by_table: dict[str, Mapping[RecordPosition, tuple[OutcomeKind, str]]] = {}

    def read(self, rows: DataFrame) -> None:
        reasons = ["reason", "reason_column", "reason_detail"]
        time = F.unix_micros("event_time").alias("time")
        columns = ["partition", "offset", "event_id", "duplicate", *reasons]
        found = rows.select(*columns, time).toArrow().sort_by([(c, "ascending") for c in POSITION])
        for number, row in enumerate(found.to_pylist()):
            position = RecordPosition(row["partition"], row["offset"])
            self._ids[position] = row["event_id"]
            if row["reason"] is not None:
                said = (row[name] for name in reasons)
                self._invalid[position] = ": ".join(each for each in said if each)
            elif row["duplicate"]:
                own = RecordPosition(~position.partition, AFTER_ALL + number)
                corrects = self._corrected[position].position
                self._duplicates[position] = Copy(row["event_id"], own, row["time"], corrects)

    def validate(
        self,
        table: SilverTable,
        rows: DataFrame,
        transform: SilverTransform,
        gold: Mapping[str, GoldStage],
    ) -> None:
        """``gold`` are the stages of the gold tables over a silver table."""
        conformed = transform.conformed(rows.withColumn("duplicate", F.lit(False)), Observation())
        columns = [*_AT]
        if table.suite is not None:
            columns += [IS_REJECTED, WARNINGS]
        decided: dict[RecordPosition, tuple[OutcomeKind, str]] = {}
        for row in conformed.select(*map(F.col, columns)).toArrow().to_pylist():
            position = RecordPosition(*(row[name] for name in _AT))
            rejected = row.get(IS_REJECTED, False)
            rules = ", ".join(row.get(WARNINGS) or ())
            decided[position] = ("rejected", rules) if rejected else ("silver", "")
        for name, stage in gold.items():
            late = stage.late_pairs(conformed).select(*_AT).distinct().toArrow()
            self._late[table.name, name] = frozenset(positions_of(late, _AT))
        passed = {at for at, (kind, _) in decided.items() if kind == "silver"}
        decided |= dict.fromkeys(self._known(table, passed), ("known", ""))
        self._by_table[table.name] = {
            position: decided.get(position, ("filtered", "")) for position in self._corrected
        }

    def _known(self, table: SilverTable, passed: Collection[RecordPosition]) -> set[RecordPosition]:
        """The records of which a table has, or would get, another copy, and those that it has
        filtered. ``passed`` are the records that meet its rules."""
        known = self._duplicates
        if known and table.suite is not None:
            rejected, kept = self._records.copies_in(table.name, {c.id for c in known.values()})
            found = set(candidates(known.values(), rejected))
            good = {copy for at, copy in known.items() if at in passed and copy in found}
            taken = set(first_copies(good, kept))
            return {at for at, copy in known.items() if copy not in found or copy in good - taken}
        return set(known)

    def outcomes(self) -> Iterator[ReplayOutcome]:
        for position, each in self._corrected.items():
            yield self._outcome(position, each)

    def _outcome(self, position: RecordPosition, each: CorrectedRecord) -> ReplayOutcome:
        if position in self._invalid:
            return ReplayOutcome(each, "invalid", why=self._invalid[position])
        before, now = each.of[0].event_id, self._ids[position]
        if before is not None and before != now:
            return ReplayOutcome(each, "other id", why=f"{before} became {now}")
        found = {name: decided[position] for name, decided in self._by_table.items()}
        if taking := tuple(name for name, (kind, _) in found.items() if kind == "silver"):
            late = [g for (s, g), rows in self._late.items() if s in taking and position in rows]
            return ReplayOutcome(each, "silver", taking, tuple(late))
        for kind in ("rejected", "filtered", "known"):
            for name, (actual, rules) in found.items():
                if actual == kind:
                    return ReplayOutcome(each, actual, why=f"{name}: {rules}" if rules else name)
        raise AssertionError(f"{position} has no outcome")
