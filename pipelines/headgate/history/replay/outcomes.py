"""The outcomes of corrected records: the engine reads and validates them, and writes nothing.

Needs a Spark session.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from headgate.declaration.kinds import BRONZE
from headgate.declaration.model import Pipeline, SilverTable
from headgate.declaration.names import POSITION, SILVER_IDENTITY, WARNINGS
from headgate.flow.bronze.copies import CorrectedCopies
from headgate.flow.bronze.stage import BronzeStage
from headgate.flow.gold.stage import GoldStage, gold_stage_of
from headgate.flow.silver.copies import Copy, candidates, first_copies
from headgate.flow.silver.transform import REJECTED as IS_REJECTED
from headgate.flow.silver.transform import SilverTransform
from headgate.history.replay.corrections import CorrectedRecord
from headgate.history.replay.refused import RefusedRecords
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.replay import RecordPosition
from headgate.lake.tables.table import Table

AFTER_ALL = 1 << 62
"""An offset after those of all existing copies."""
_AT = tuple(SILVER_IDENTITY)
OutcomeKind = Literal["silver", "invalid", "rejected", "filtered", "known", "other id"]
"""``known``: the tables have decided on this record already. ``other id``: the corrected record has
another id."""
_Decision = tuple[OutcomeKind, str]
"""What becomes of a row, and the rules that it breaks."""
_FILTERED: _Decision = ("filtered", "")
_Row = tuple[RecordPosition, int]
"""A record, and the place of a row among the rows of the record."""


@dataclass(frozen=True)
class ReplayOutcome:
    """What would happen to a corrected record. ``tables`` are the silver tables that would take it,
    ``late`` the gold tables with a result that it is late for. ``why`` is the reason if no table
    would take it, or takes only some of its items."""

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
    readers = pipeline.with_late_rows
    gold = {name: gold_stage_of(spark, table, each) for name, each in readers.items()}
    tables = [t for t in pipeline.silver.values() if t.source == source.name]
    with BronzeStage(spark, bronze, source).decoded(copies) as rows:
        found.read(rows)
        for silver in tables:
            own = {n: gold[n] for n, each in readers.items() if silver.name in each.inputs}
            found.validate(silver, rows, SilverTransform(silver, source.record), own)
    return list(found.outcomes())


class _Outcomes:
    def __init__(self, records: RefusedRecords, corrected: Sequence[CorrectedRecord]) -> None:
        self._records = records
        self._corrected = {records.origin(each.position): each for each in corrected}
        self._invalid: dict[RecordPosition, str] = {}
        self._ids: dict[RecordPosition, str | None] = {}
        self._duplicates: dict[RecordPosition, Copy] = {}
        self._late: dict[tuple[str, str], frozenset[_Row]] = {}
        self._by_table: dict[str, Mapping[RecordPosition, Mapping[int, _Decision]]] = {}

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
        rows_of: dict[RecordPosition, dict[int, _Decision]] = defaultdict(dict)
        for row in conformed.select(*map(F.col, columns)).toArrow().to_pylist():
            position, item = _row_at(row)
            rejected = row.get(IS_REJECTED, False)
            rules = ", ".join(row.get(WARNINGS) or ())
            rows_of[position][item] = ("rejected", rules) if rejected else ("silver", "")
        for name, stage in gold.items():
            late = stage.late_pairs(conformed).select(*_AT).distinct().toArrow()
            self._late[table.name, name] = frozenset(map(_row_at, late.to_pylist()))
        for position, item in self._known(table, rows_of):
            rows_of[position][item] = ("known", "")
        self._by_table[table.name] = rows_of

    def _known(
        self, table: SilverTable, rows_of: Mapping[RecordPosition, Mapping[int, _Decision]]
    ) -> list[_Row]:
        """The rows of which a table has, or would get, another copy, and those of records that it
        has filtered."""
        if not (known := self._duplicates):
            return []
        rows: dict[_Row, Copy] = {}
        for at, copy in known.items():
            items = rows_of.get(at)
            rows |= {(at, item): replace(copy, item=item) for item in items} if items else {}
            rows |= {} if items else {(at, 0): copy}
        if table.suite is None:
            return list(rows)
        rejected, kept = self._records.copies_in(table.name, {c.id for c in known.values()})
        found = set(candidates(rows.values(), rejected))
        good = {
            copy
            for (at, item), copy in rows.items()
            if copy in found and rows_of.get(at, {}).get(item) == ("silver", "")
        }
        taken = set(first_copies(good, kept))
        return [row for row, copy in rows.items() if copy not in found or copy in good - taken]

    def outcomes(self) -> Iterator[ReplayOutcome]:
        for position, each in self._corrected.items():
            yield self._outcome(position, each)

    def _outcome(self, position: RecordPosition, each: CorrectedRecord) -> ReplayOutcome:
        if position in self._invalid:
            return ReplayOutcome(each, "invalid", why=self._invalid[position])
        before, now = each.of[0].event_id, self._ids[position]
        if before is not None and before != now:
            return ReplayOutcome(each, "other id", why=f"{before} became {now}")
        found = {
            name: rows.get(position) or {0: _FILTERED} for name, rows in self._by_table.items()
        }
        taken = {
            name: [(position, item) for item, (kind, _) in rows.items() if kind == "silver"]
            for name, rows in found.items()
        }
        if taking := tuple(name for name, rows in taken.items() if rows):
            late = [g for (s, g), rows in self._late.items() if not rows.isdisjoint(taken[s])]
            stay = "; ".join(why for name in taking if (why := _rejected(name, found[name])))
            return ReplayOutcome(each, "silver", taking, tuple(late), stay)
        for kind in ("rejected", "filtered", "known"):
            for name, rows in found.items():
                rules = [rule for actual, rule in rows.values() if actual == kind]
                if rules:
                    why = ", ".join(dict.fromkeys(filter(None, rules)))
                    return ReplayOutcome(each, kind, why=f"{name}: {why}" if why else name)
        raise AssertionError(f"{position} has no outcome")


def _row_at(row: Mapping[str, Any]) -> _Row:
    *position, item = (row[name] for name in _AT)
    return RecordPosition(*position), item


def _rejected(table: str, rows: Mapping[int, _Decision]) -> str:
    """Which items of a record a table still rejects; empty if it rejects none."""
    found = [f"item {item}: {rules}" for item, (kind, rules) in rows.items() if kind == "rejected"]
    return f"{table} still rejects {', '.join(found)}" if found else ""
