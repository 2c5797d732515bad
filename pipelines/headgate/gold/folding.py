"""Folding a batch into the open windows: frames in, frames out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.gold.measures import fold, merged, value
from headgate.gold.schema import gold_type
from headgate.spec.model import GoldTable, Measure


def partial_states(pairs: DataFrame, table: GoldTable) -> DataFrame:
    """``_key`` and ``new`` (a state per measure) of every window and key among folded pairs."""
    key = F.struct(
        "window_start", "window_end", *(_key(b.name, b.expression, b.type) for b in table.by)
    )
    keyed = pairs.withColumn("_key", key)
    aggregates = [
        F.expr(field.partial).cast(field.type).alias(_flat(m, name))
        for m in table.measures
        for name, field in fold(m).fields.items()
    ]
    partials = keyed.groupBy("_key").agg(*aggregates)
    state = F.struct(*(_state(m, partial(_flat_column, m)) for m in table.measures))
    return partials.select("_key", state.alias("new"))


def open_states(open_rows: DataFrame, table: GoldTable) -> DataFrame:
    """``_key``, ``old`` and ``updated_at`` of the open rows of a gold table."""
    key = F.struct("window_start", "window_end", *(f"`{b.name}`" for b in table.by))
    return open_rows.select(
        key.alias("_key"), F.col("_state").alias("old"), F.col("updated_at").alias("old_update")
    )


def folded(
    partials: DataFrame, opened: DataFrame, moment: DataFrame, table: GoldTable
) -> DataFrame:
    """The rows of ``gold_type`` after a batch: every open window, on with what came.

    ``moment`` has one row: ``now`` and ``threshold``, the window ends up to which windows are
    final now (microseconds). It is a frame, not a literal, because a literal that changes with
    every batch would make Spark compile the query anew each time.
    """
    joined = partials.join(opened.hint("shuffle_hash"), "_key", "full_outer")
    merged_state = F.struct(*(_merge(m) for m in table.measures))
    rows = joined.crossJoin(F.broadcast(moment)).select(
        "_key.*",
        merged_state.alias("_state"),
        F.when(F.col("new").isNotNull(), F.col("now"))
        .otherwise(F.col("old_update"))
        .alias("updated_at"),
        (F.unix_micros("_key.window_end") <= F.col("threshold")).alias("final"),
    )
    return read_out(rows, table)


def read_out(rows: DataFrame, table: GoldTable) -> DataFrame:
    """Measures and columns from states; a final row lets go of its state."""
    measured = rows.withColumns(
        {m.name: F.expr(value(m, f"_state.`{m.name}`")) for m in table.measures}
    )
    derived = measured.withColumns(
        {c.name: F.expr(f"cast(({c.expression}) as {c.type})") for c in table.columns}
    )
    complete = derived.withColumn("revision", F.lit(0)).withColumn(
        "_state", F.when(~F.col("final"), F.col("_state"))
    )
    return complete.select(*(F.col(f"`{name}`") for name in gold_type(table).fieldNames()))


def moment(spark: SparkSession, now: datetime, threshold: int | None) -> DataFrame:
    """The one-row frame of what changes with every batch."""
    least = -(1 << 62)
    row = pa.table(
        {
            "now": pa.array([now], pa.timestamp("us", "UTC")),
            "threshold": pa.array([least if threshold is None else threshold], pa.int64()),
        }
    )
    return spark.createDataFrame(row)


def _key(name: str, expression: str, type_: str) -> Column:
    return F.expr(f"cast(({expression}) as {type_})").alias(name)


def _flat(measure: Measure, field: str) -> str:
    return f"_{measure.name}_{field}"


def _flat_column(measure: Measure, field: str) -> Column:
    return F.col(_flat(measure, field))


def _state(measure: Measure, field: Callable[[str], Column]) -> Column:
    names: Sequence[str] = tuple(fold(measure).fields)
    return F.struct(*(field(n).alias(n) for n in names)).alias(measure.name)


def _merge(measure: Measure) -> Column:
    old, new = f"old.`{measure.name}`", f"new.`{measure.name}`"
    fields = fold(measure).fields
    return _state(measure, lambda n: F.expr(merged(measure, n, old, new)).cast(fields[n].type))
