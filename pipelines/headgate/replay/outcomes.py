"""What would become of mended records: the engine itself reads and judges them, and writes nothing.

Needs a Spark session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from headgate.bronze.copies import MendedCopies
from headgate.bronze.stage import BronzeStage
from headgate.declaration.kinds import BRONZE, REJECTED
from headgate.declaration.model import Pipeline, SilverTable
from headgate.declaration.names import WARNINGS
from headgate.operators.contract import GoldStage, stage_of
from headgate.replay.mending import Mended
from headgate.replay.refused import RefusedRecords
from headgate.silver.transform import REJECTED as IS_REJECTED
from headgate.silver.transform import SilverTransform
from headgate.storage.layout import Layout
from headgate.tables.replay import Position
from headgate.tables.table import Table

Verdict = Literal["silver", "invalid", "rejected", "filtered", "known", "other id"]
"""``known``: the table has this record already. ``other id``: the mended record has another id."""


@dataclass(frozen=True)
class Outcome:
    """What would become of a mended record. ``tables`` are the silver tables that would take it,
    ``late`` the gold tables with a result that it is late for. ``why`` says what is against it."""

    mended: Mended
    verdict: Verdict
    tables: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    why: str = ""

    @property
    def passes(self) -> bool:
        return bool(self.tables)


def outcomes(
    spark: SparkSession,
    layout: Layout,
    pipeline: Pipeline,
    records: RefusedRecords,
    mended: Sequence[Mended],
    copies: MendedCopies,
) -> list[Outcome]:
    """The outcome of each mended record, in order."""
    source = records.source
    bronze = Table(layout.storage, BRONZE.path(source.name), pipeline=pipeline.name)
    bronze.refresh()
    judge = _Judge(records, mended)

    def table(path: str) -> Table:
        return Table(layout.storage, path, pipeline=pipeline.name)

    gold = {name: stage_of(spark, table, each) for name, each in pipeline.gold.items()}
    tables = [t for t in pipeline.silver.values() if t.source == source.name]
    with BronzeStage(spark, bronze, source).judged(copies) as rows:
        judge.read(rows)
        for silver in tables:
            readers = {n: gold[n] for n, g in pipeline.gold.items() if g.silver == silver.name}
            judge.decide(silver, rows, SilverTransform(silver, source.record), readers)
    return list(judge.outcomes())


class _Judge:
    def __init__(self, records: RefusedRecords, mended: Sequence[Mended]) -> None:
        self._records = records
        self._mended = {records.origin(each.position): each for each in mended}
        self._invalid: dict[Position, str] = {}
        self._ids: dict[Position, str | None] = {}
        self._times: dict[str, int] = {}
        self._late: dict[tuple[str, str], frozenset[Position]] = {}
        self._by_table: dict[str, Mapping[Position, tuple[Verdict, str]]] = {}

    def read(self, rows: DataFrame) -> None:
        columns = ["partition", "offset", "event_id", "reason", "reason_column", "reason_detail"]
        time = F.unix_micros("event_time").alias("time")
        for row in rows.select(*columns, time).toArrow().to_pylist():
            position = Position(row["partition"], row["offset"])
            self._ids[position] = row["event_id"]
            if row["reason"] is None:
                self._times[row["event_id"]] = row["time"]
            else:
                said = (row["reason"], row["reason_column"], row["reason_detail"])
                self._invalid[position] = ": ".join(each for each in said if each)

    def decide(
        self,
        table: SilverTable,
        rows: DataFrame,
        transform: SilverTransform,
        gold: Mapping[str, GoldStage],
    ) -> None:
        """``gold`` are the stages of the gold tables over a silver table."""
        conformed = transform.conformed(rows, Observation())
        columns = ["_partition", "_offset"]
        if table.suite is not None:
            columns += [IS_REJECTED, WARNINGS]
        decided: dict[Position, tuple[Verdict, str]] = {}
        for row in conformed.select(*map(F.col, columns)).toArrow().to_pylist():
            position = Position(row["_partition"], row["_offset"])
            rejected = row.get(IS_REJECTED, False)
            rules = ", ".join(row.get(WARNINGS) or ())
            decided[position] = ("rejected", rules) if rejected else ("silver", "")
        for name, stage in gold.items():
            late = stage.late_pairs(conformed).select("_partition", "_offset").distinct()
            found = (Position(*row.values()) for row in late.toArrow().to_pylist())
            self._late[table.name, name] = frozenset(found)
        known = self._records.has_copy(table.name, self._times)
        self._by_table[table.name] = {
            position: self._against(table, position, known)
            or decided.get(position, ("filtered", ""))
            for position in self._mended
        }

    def _against(
        self, table: SilverTable, position: Position, known: frozenset[str]
    ) -> tuple[Verdict, str] | None:
        """Why a table would not even look at a record: it has it already."""
        of = self._mended[position].of
        is_refused = any(each.table == f"{REJECTED.name}.{table.name}" for each in of)
        has_it = self._ids[position] in known or (of[0].is_valid and not is_refused)
        return ("known", "") if has_it else None

    def outcomes(self) -> Iterator[Outcome]:
        for position, each in self._mended.items():
            yield self._outcome(position, each)

    def _outcome(self, position: Position, each: Mended) -> Outcome:
        if position in self._invalid:
            return Outcome(each, "invalid", why=self._invalid[position])
        before, now = each.of[0].event_id, self._ids[position]
        if before is not None and before != now:
            return Outcome(each, "other id", why=f"{before} became {now}")
        found = {name: decided[position] for name, decided in self._by_table.items()}
        if taking := tuple(name for name, (verdict, _) in found.items() if verdict == "silver"):
            late = [g for (s, g), rows in self._late.items() if s in taking and position in rows]
            return Outcome(each, "silver", taking, tuple(late))
        for verdict in ("rejected", "filtered", "known"):
            for name, (told, rules) in found.items():
                if told == verdict:
                    return Outcome(each, told, why=f"{name}: {rules}" if rules else name)
        raise AssertionError(f"{position} has no outcome")
