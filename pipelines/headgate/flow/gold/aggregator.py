"""Folds a batch into the open results: frames in, frames out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cached_property, partial
from typing import ClassVar

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from headgate.declaration.contracts.operator import columns_of
from headgate.declaration.model import GoldTable, Measure
from headgate.declaration.names import SILVER_IDENTITY
from headgate.flow.gold.schema import (
    fold_of,
    gold_type,
    merged_sql,
    states_type,
    value_sql,
)
from headgate.lake.tables.data_file import STATE
from headgate.lake.tables.frames import Projection

ON_TIME = "_late is null"
"""Whether a pair is folded."""


class Aggregator:
    """The fold of one gold table. Its expressions are built once: building them for every
    batch costs more than folding a small one."""

    def __init__(self, table: GoldTable, end: Column) -> None:
        """``end`` as in ``Assignment``."""
        measures, columns = table.measures, columns_of(table)
        key = F.struct(*columns, *keys_of(table))
        self._key = Projection("*", key.alias("_key"))
        self._key_if_on_time = Projection("*", F.when(F.expr(ON_TIME), key).alias("_key"))
        self._measures = measures
        self._partials_on_time = partials([on_time(m) for m in measures])
        self._new = Projection("_key", new_state(measures).alias("new"), "_pairs")
        self._salt = table.salt and _salt(table.salt)
        joined = F.expr(all_merged(measures, "collect_list(new)")).alias("new")
        self._joined = [joined, F.sum("_pairs").alias("_pairs")]
        open_key = F.struct(*columns, *(f"`{b.name}`" for b in table.by)).alias("_key")
        self._old = Projection(
            open_key, F.col(STATE).alias("old"), F.col("updated_at").alias("old_update")
        )
        self._no_old = Projection(
            *("*", F.lit(None).cast(str(states_type(measures))).alias("old")),
            F.lit(None).cast("timestamp").alias("old_update"),
            *(F.lit(0).alias(name) for name in self.counted),
        )
        touched = F.when(F.col("new").isNotNull(), F.col("_now"))
        self._merged = Projection(
            F.col("_key.*"),
            F.struct(*(_merge(m) for m in measures)).alias(STATE),
            touched.otherwise(F.col("old_update")).alias("updated_at"),
            "_threshold",
            *("_pairs", *self.counted),
            F.col("_key").isNull().alias("_is_late"),
        )
        values = (F.expr(value_sql(m, f"{STATE}.`{m.name}`")).alias(m.name) for m in measures)
        is_final = (end <= F.col("_threshold")).alias("final")
        self._measured = Projection("*", is_final, *values)
        computed = {c.name: F.expr(f"cast(({c.expression}) as {c.type})") for c in table.columns}
        computed["revision"] = F.lit(0)
        computed[STATE] = F.when(~F.col("final"), F.col(STATE))
        self._is_result = ~F.col("_is_late")
        self._counts = [
            F.sum("_pairs").alias("pairs"),
            F.sum(F.when(F.col("_is_late"), F.col("_pairs"))).alias("late"),
            F.count(F.when(self._is_result, 1)).alias("rows"),
            F.count(F.when(self._is_result & F.col("final"), 1)).alias("final"),
            *self.more_counts(),
        ]
        names = (*gold_type(table).fieldNames(), STATE)
        self._columns = Projection(
            *(computed.get(name, F.col(f"`{name}`")).alias(name) for name in names)
        )

    counted: ClassVar[tuple[str, ...]] = ()
    """More columns of the merged rows, which ``more_counts`` uses."""

    def more_counts(self) -> Sequence[Column]:
        """More counts of a batch, beside ``pairs``, ``late``, ``rows`` and ``final``."""
        return ()

    @cached_property
    def _partials(self) -> Sequence[Column]:
        return partials(self._measures)

    def step(
        self, pairs: DataFrame, opened: DataFrame, constants: DataFrame, counts: Observation
    ) -> DataFrame:
        """The rows of ``gold_type`` and their states after a batch: the open rows of the table,
        merged with the pairs of the batch whose ``_late`` is null.

        ``counts`` observes, after the last shuffle, how many ``pairs`` there are, how many of them
        are ``late``, and how many ``rows`` and ``final`` rows the result has.

        ``constants`` has one row: ``_now`` and ``_threshold``; results that end at or before it are
        final (microseconds). It is a frame, because with a literal that changes with every batch
        Spark would compile the query again each time.
        """
        return self.finished(self.merging(pairs, opened), constants, counts)

    def merging(self, pairs: DataFrame, opened: DataFrame) -> DataFrame:
        """The results of a batch: ``_key``; ``new``, the state of the batch; ``old`` and
        ``old_update`` of the open row; and ``_pairs``, a number. Late pairs are in one row, with a
        null as its ``_key`` and without values, so that they are counted after the shuffle,
        too."""
        states = self._states(self._key_if_on_time.of(pairs), self._partials_on_time)
        return states.join(self._old.of(opened).hint("shuffle_hash"), "_key", "full_outer")

    def keyed(self, pairs: DataFrame) -> DataFrame:
        """Some included pairs with ``_key``: their result and key."""
        return self._key.of(pairs)

    def results(self, keyed: DataFrame, constants: DataFrame) -> DataFrame:
        """The rows of ``gold_type`` and their states that some pairs with ``_key`` give alone."""
        return self.finished(self._no_old.of(self._states(keyed, self._partials)), constants)

    def _states(self, keyed: DataFrame, partials: Sequence[Column]) -> DataFrame:
        if self._salt is None:
            return self._new.of(keyed.groupBy("_key").agg(*partials))
        parts = keyed.groupBy("_key", self._salt).agg(*partials)
        return self._new.of(parts).groupBy("_key").agg(*self._joined)

    def finished(
        self, merging: DataFrame, constants: DataFrame, counts: Observation | None = None
    ) -> DataFrame:
        """The rows that the columns of ``merging`` give, as ``step`` returns them."""
        merged_rows = self._merged.of(merging.crossJoin(F.broadcast(constants)))
        rows = self._measured.of(merged_rows)
        if counts is not None:
            rows = rows.observe(counts, *self._counts).where(self._is_result)
        return self._columns.of(rows)


def batch_constants(spark: SparkSession, now: datetime, threshold: int | None) -> DataFrame:
    """The frame ``constants`` of ``step``: the values that change with every batch."""
    least = -(1 << 62)
    row = pa.table(
        {
            "_now": pa.array([now], pa.timestamp("us", "UTC")),
            "_threshold": pa.array([least if threshold is None else threshold], pa.int64()),
        }
    )
    return spark.createDataFrame(row)


def keys_of(table: GoldTable) -> list[Column]:
    """The columns of the key, computed from a row of silver."""
    return [F.expr(f"cast(({b.expression}) as {b.type})").alias(b.name) for b in table.by]


def key_of_pair(table: GoldTable) -> Column:
    """The key of a pair as a struct, which is never null."""
    return F.struct(F.lit(0).alias("_"), *keys_of(table))


def key_of_row(table: GoldTable) -> Column:
    """As ``key_of_pair``, of a row of gold."""
    return F.struct(F.lit(0).alias("_"), *(F.col(f"`{b.name}`") for b in table.by))


def partials(measures: Sequence[Measure]) -> list[Column]:
    """The fields of the partial states of some pairs, and the number of these pairs."""
    fields = [
        F.expr(field.partial).cast(str(field.type)).alias(_flat(m, name))
        for m in measures
        for name, field in fold_of(m).fields.items()
    ]
    return [*fields, F.count(F.lit(1)).alias("_pairs")]


def new_state(measures: Sequence[Measure]) -> Column:
    """The state that the fields of ``partials`` are: a struct for each measure."""
    return F.struct(*(_state(m, partial(_flat_column, m)) for m in measures))


def on_time(measure: Measure) -> Measure:
    """A measure for which late pairs do not count."""
    also = "" if measure.filter is None else f" and ({measure.filter})"
    return replace(measure, filter=f"{ON_TIME}{also}")


def _flat(measure: Measure, field: str) -> str:
    return f"_{measure.name}_{field}"


def _flat_column(measure: Measure, field: str) -> Column:
    return F.col(f"`{_flat(measure, field)}`")


def _state(measure: Measure, field: Callable[[str], Column]) -> Column:
    fields = fold_of(measure).fields
    return F.struct(*(field(name).alias(name) for name in fields)).alias(measure.name)


def _salt(parts: int) -> Column:
    """Splits a hot key's rows into ``parts`` groups of about equal size. Any split is correct,
    because a fold does not depend on the order of rows."""
    return F.pmod(F.xxhash64(*SILVER_IDENTITY), F.lit(parts)).alias("_salt")


def all_merged(measures: Sequence[Measure], states: str) -> str:
    """The SQL that merges an array of states into one state per measure."""
    both = ", ".join(f"'{m.name}', {_merged_sql(m, 'a', 'b')}" for m in measures)
    merge = f"case when a is null then b else named_struct({both}) end"
    return f"aggregate({states}, cast(null as {states_type(measures)}), (a, b) -> {merge})"


def _merged_sql(measure: Measure, old: str, new: str) -> str:
    pair = f"{old}.`{measure.name}`", f"{new}.`{measure.name}`"
    fields = (
        f"'{name}', cast({merged_sql(measure, name, *pair)} as {field.type})"
        for name, field in fold_of(measure).fields.items()
    )
    return f"named_struct({', '.join(fields)})"


def _merge(measure: Measure) -> Column:
    old, new = f"old.`{measure.name}`", f"new.`{measure.name}`"
    fields = fold_of(measure).fields
    return _state(
        measure, lambda n: F.expr(merged_sql(measure, n, old, new)).cast(str(fields[n].type))
    )
