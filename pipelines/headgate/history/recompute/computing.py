"""Computes gold tables again from silver and late, and compares. Nothing is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from headgate.declaration.contracts.operator import key_of, shown_key
from headgate.declaration.model import GoldTable, Pipeline
from headgate.errors import HeadgateError
from headgate.flow.gold.schema import compared_columns, gold_type, rows_of_both
from headgate.flow.operations.backfill import rows_of_patch
from headgate.flow.operations.patch import CHANGE, CHANGED, EQUAL, GONE, NEW
from headgate.history.backfill.comparing import Comparison
from headgate.history.backfill.computing import computable_stage
from headgate.history.backfill.selection import EventTimeRange
from headgate.history.recompute.plan import WHOLE, RecomputeTarget, plan_recompute
from headgate.history.recompute.report import Recomputation, RecomputedTable
from headgate.history.savepoints.store import settled_snapshot
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.data_file import FINAL
from headgate.lake.tables.decisions import ControlTable
from headgate.lake.tables.frames import TableRows
from headgate.lake.tables.row_changes import RowChanges

_NUMBER, _PATCH = "_number", "_patch"


def recompute(
    spark: SparkSession,
    layout: Layout,
    deployed: Pipeline,
    ranges: Mapping[str, EventTimeRange],
    now: datetime,
) -> Recomputation:
    """Compare a range of each of some gold tables, by name, with the definition; ``WHOLE`` for all
    results. A driver may run meanwhile.

    Raises HeadgateError if there are no tables, ResetOpenError, OtherDeclarationError,
    NotBackfilledError, LogGapError, DamagedFileError.
    """
    at = settled_snapshot(layout, deployed)
    targets = plan_recompute(at, deployed, ranges)
    found = tuple(_compared(spark, each, now) for each in targets)
    generation = ControlTable.of(layout.storage, deployed.name).refresh().generation
    if generation != at.decisions.generation:
        raise HeadgateError(
            "the tables were reset while they were read", remedy="type the command again"
        )
    return Recomputation(found)


def _compared(spark: SparkSession, target: RecomputeTarget, now: datetime) -> RecomputedTable:
    declared = target.declared
    values = (*compared_columns(declared), FINAL)
    comparison = Comparison(key_of(declared), values, gold_type(declared))
    with _kept(comparison.of(*_both_sides(spark, target, now))) as compared:
        counts = {
            row[CHANGE]: int(row["count"]) for row in compared.groupBy(CHANGE).count().collect()
        }
        wrong, corrected = compared.where(F.col(CHANGE) != EQUAL), dict[str, int]()
        if target.patches and counts.keys() - {EQUAL}:
            wrong = _with_patch(spark, comparison, wrong, target)
            by_patch = wrong.groupBy(CHANGE, _NUMBER).count().collect()
            ids = {each.number: each.id for each in target.patches}
            for row in by_patch:
                if row[_NUMBER] is not None:
                    counts[row[CHANGE]] -= row["count"]
                    id_ = ids[row[_NUMBER]]
                    corrected[id_] = corrected.get(id_, 0) + int(row["count"])
            wrong = wrong.where(F.col(_NUMBER).isNull())
        differing = {each: counts.get(each, 0) for each in (CHANGED, NEW, GONE)}
        return RecomputedTable(
            table=declared.name,
            n=target.gold.n,
            equal=counts.get(EQUAL, 0),
            changed=differing[CHANGED],
            missing=differing[NEW],
            extra=differing[GONE],
            corrected=corrected,
            rows=RowChanges(
                *shown_key(declared),
                values,
                rows=comparison.rows(wrong, differing),
                total=sum(differing.values()),
            ),
        )


@contextmanager
def _kept(frame: DataFrame) -> Iterator[DataFrame]:
    """A frame that is computed once."""
    kept = frame.persist()
    try:
        yield kept
    finally:
        kept.unpersist()


def _both_sides(
    spark: SparkSession, target: RecomputeTarget, now: datetime
) -> tuple[DataFrame, ...]:
    """The rows of the table whose results lie in the range, and those of the definition: open and
    final ones."""
    inputs = target.inputs
    known = (*inputs.upstream.values(), inputs.late, target.gold.table)
    tables = {table.name: table for table in known if table is not None}
    stage = computable_stage(spark, tables.__getitem__, target.declared, inputs.above)
    state = target.gold.state
    defined = stage.defined_rows(inputs.files, inputs.late_files, state, now)
    read = TableRows(spark, target.gold.table, declared=gold_type(target.declared))
    rows = rows_of_both(read, target.gold_files)
    if target.range == WHOLE:
        return rows, defined
    return stage.inside(rows, defined, target.range.begin, target.range.end, only_final=False)


def _with_patch(
    spark: SparkSession, comparison: Comparison, wrong: DataFrame, target: RecomputeTarget
) -> DataFrame:
    """Some compared rows with ``_NUMBER``: that of the last backfill with a patch for the row, if
    the table has what the patch says."""
    patched = _last_patches(spark, target)
    key = [_either(name).alias(name) for name in key_of(target.declared)]
    joined = wrong.withColumn("_key", F.struct(*key)).join(patched, "_key", "left").drop("_key")
    same = F.col("old").isNotNull()
    for name in (*compared_columns(target.declared), FINAL):
        same &= comparison.is_same(name, _PATCH)
    is_gone = F.col(f"{_PATCH}.{CHANGE}") == GONE
    is_patched = F.when(is_gone, F.col("old").isNull()).otherwise(same)
    return joined.withColumn(_NUMBER, F.when(is_patched, F.col(_NUMBER)))


def _last_patches(spark: SparkSession, target: RecomputeTarget) -> DataFrame:
    """The last patch of each row: its ``_key``, ``_PATCH`` and ``_NUMBER``."""
    home = target.gold.table.home
    names = [CHANGE, *(field.name for field in gold_type(target.declared).fields)]
    parts = (
        rows_of_patch(spark, home, each.patch)
        .select(*_selected(target.declared, names))
        .withColumn(_NUMBER, F.lit(each.number).cast("bigint"))
        for each in target.patches
    )
    last = Window.partitionBy("_key").orderBy(F.desc(_NUMBER))
    rows = reduce(DataFrame.unionByName, parts)
    return rows.withColumn("_row", F.row_number().over(last)).where("_row = 1").drop("_row")


def _selected(declared: GoldTable, names: list[str]) -> tuple[Column, Column]:
    key, row = (
        F.struct(*(F.col(f"`{name}`") for name in each)) for each in (key_of(declared), names)
    )
    return key.alias("_key"), row.alias(_PATCH)


def _either(name: str) -> Column:
    return F.coalesce(F.col(f"new.`{name}`"), F.col(f"old.`{name}`"))
