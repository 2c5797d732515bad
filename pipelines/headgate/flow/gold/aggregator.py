"""Folds a batch into the open results: frames in, frames out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property, partial

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headgate.declaration.contracts.operator import begin_of, columns_of
from headgate.declaration.model import GoldTable, Measure
from headgate.declaration.names import SILVER_IDENTITY
from headgate.declaration.types import Struct
from headgate.flow.gold.pairs import Assignment, Pairs
from headgate.flow.gold.schema import (
    fold_of,
    gold_type,
    merged_sql,
    state_field,
    state_type,
    value_sql,
)
from headgate.lake.tables.data_file import STATE
from headgate.lake.tables.frames import Projection

_ON_TIME = "_late is null"


class Aggregator:
    """The fold of one gold table. Its expressions are built once: building them for every
    batch costs more than folding a small one."""

    def __init__(self, table: GoldTable, end: Column) -> None:
        """``end`` as in ``Assignment``."""
        measures, columns = table.measures, columns_of(table)
        keys = [F.expr(f"cast(({b.expression}) as {b.type})").alias(b.name) for b in table.by]
        key = F.struct(*columns, *keys)
        self._key = Projection("*", key.alias("_key"))
        self._key_if_on_time = Projection("*", F.when(F.expr(_ON_TIME), key).alias("_key"))
        self._measures = measures
        self._partials_on_time = _partials([_on_time(m) for m in measures])
        new = F.struct(*(_state(m, partial(_flat_column, m)) for m in measures)).alias("new")
        self._new = Projection("_key", new, "_pairs")
        self._salt = table.salt and _salt(table.salt)
        joined = F.expr(_all_merged(measures, "collect_list(new)")).alias("new")
        self._joined = [joined, F.sum("_pairs").alias("_pairs")]
        open_key = F.struct(*columns, *(f"`{b.name}`" for b in table.by)).alias("_key")
        self._old = Projection(
            open_key, F.col(STATE).alias("old"), F.col("updated_at").alias("old_update")
        )
        touched = F.when(F.col("new").isNotNull(), F.col("_now"))
        self._merged = Projection(
            F.col("_key.*"),
            F.struct(*(_merge(m) for m in measures)).alias(STATE),
            touched.otherwise(F.col("old_update")).alias("updated_at"),
            "_threshold",
            "_pairs",
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
        ]
        names = (*gold_type(table).fieldNames(), STATE)
        self._columns = Projection(
            *(computed.get(name, F.col(f"`{name}`")).alias(name) for name in names)
        )

    @cached_property
    def _partials(self) -> Sequence[Column]:
        return _partials(self._measures)

    def states_on_time(self, pairs: DataFrame) -> DataFrame:
        """As ``states_of``, of the pairs whose ``_late`` is null. The others are in one row, with a
        null as its ``_key`` and without values, so that they are counted after the shuffle, too."""
        return self._states(self._key_if_on_time.of(pairs), self._partials_on_time)

    def keyed(self, pairs: DataFrame) -> DataFrame:
        """Some pairs with ``_key``: their result and key."""
        return self._key.of(pairs)

    def states_of(self, keyed: DataFrame) -> DataFrame:
        """``_key``, ``new`` (a state per measure) and ``_pairs`` (their number) of every result and
        key among some pairs with ``_key``."""
        return self._states(keyed, self._partials)

    def _states(self, keyed: DataFrame, partials: Sequence[Column]) -> DataFrame:
        if self._salt is None:
            return self._new.of(keyed.groupBy("_key").agg(*partials))
        parts = keyed.groupBy("_key", self._salt).agg(*partials)
        return self._new.of(parts).groupBy("_key").agg(*self._joined)

    def open_states(self, open_rows: DataFrame) -> DataFrame:
        """``_key``, ``old`` and ``old_update`` of the open rows of the gold table."""
        return self._old.of(open_rows)

    def folded(
        self,
        partials: DataFrame,
        opened: DataFrame,
        constants: DataFrame,
        counts: Observation | None = None,
    ) -> DataFrame:
        """The rows of ``gold_type`` and their states after a batch: every open result, merged with
        the batch's partial states.

        ``counts`` observes, after the last shuffle, how many ``pairs`` the partial states have, how
        many of them are ``late``, and how many ``rows`` and ``final`` rows there are.

        ``constants`` has one row: ``_now`` and ``_threshold``; results that end at or before it are
        final (microseconds). It is a frame, because with a literal that changes with every batch
        Spark would compile the query again each time.
        """
        joined = partials.join(opened.hint("shuffle_hash"), "_key", "full_outer")
        merged_rows = self._merged.of(joined.crossJoin(F.broadcast(constants)))
        rows = self._measured.of(merged_rows)
        if counts is not None:
            rows = rows.observe(counts, *self._counts).where(self._is_result)
        return self._columns.of(rows)


def batch_constants(spark: SparkSession, now: datetime, threshold: int | None) -> DataFrame:
    """The frame ``constants`` of ``folded``: the values that change with every batch."""
    least = -(1 << 62)
    row = pa.table(
        {
            "_now": pa.array([now], pa.timestamp("us", "UTC")),
            "_threshold": pa.array([least if threshold is None else threshold], pa.int64()),
        }
    )
    return spark.createDataFrame(row)


def _partials(measures: Sequence[Measure]) -> list[Column]:
    """The fields of the partial states of some pairs, and the number of these pairs."""
    fields = [
        F.expr(field.partial).cast(str(field.type)).alias(_flat(m, name))
        for m in measures
        for name, field in fold_of(m).fields.items()
    ]
    return [*fields, F.count(F.lit(1)).alias("_pairs")]


def _on_time(measure: Measure) -> Measure:
    """A measure for which late pairs do not count."""
    also = "" if measure.filter is None else f" and ({measure.filter})"
    return replace(measure, filter=f"{_ON_TIME}{also}")


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


def _all_merged(measures: Sequence[Measure], states: str) -> str:
    """The SQL that merges an array of states into one state per measure."""
    type_ = Struct.of({m.name: state_type(m) for m in measures})
    both = ", ".join(f"'{m.name}', {_merged_sql(m, 'a', 'b')}" for m in measures)
    merge = f"case when a is null then b else named_struct({both}) end"
    return f"aggregate({states}, cast(null as {type_}), (a, b) -> {merge})"


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


@dataclass(frozen=True)
class GoldFold:
    """The fold of one gold table."""

    spark: SparkSession
    declared: GoldTable
    pairs: Pairs
    assignment: Assignment
    aggregator: Aggregator

    def included(self, silver: DataFrame, waiting: DataFrame) -> DataFrame:
        """The pairs of some rows of silver with ``_key``, except the late pairs ``waiting``."""
        pairs = self.aggregator.keyed(self.pairs.assigned(silver))
        place = [*SILVER_IDENTITY, *begin_of(self.declared)]
        return pairs.join(waiting.select(*place), place, "left_anti")

    def results(self, included: DataFrame, now: datetime, final_through: int | None) -> DataFrame:
        """The definition of the table: the rows of the results of some pairs with ``_key``, and
        their states. A result is final if it ends at or before ``final_through`` (microseconds
        since 1970 UTC)."""
        stored = StructType([*gold_type(self.declared).fields, state_field(self.declared)])
        opened = self.aggregator.open_states(self.spark.createDataFrame([], stored))
        constants = batch_constants(self.spark, now, final_through)
        return self.aggregator.folded(self.aggregator.states_of(included), opened, constants)
