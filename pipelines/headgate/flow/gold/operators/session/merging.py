"""Merges a batch into open sessions: one pass over the rows of the batch and the open rows.

A row of the batch may extend an open session, move its begin, or join several. So rows and open
sessions are put in order by their begins together, and each session is aggregated as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.declaration.model import GoldTable
from headgate.declaration.names import SILVER_IDENTITY
from headgate.flow.gold.aggregator import (
    ON_TIME,
    Aggregator,
    all_merged,
    key_of_pair,
    key_of_row,
    new_state,
    on_time,
    partials,
)
from headgate.flow.gold.operators.session.sessions import BEGIN, END, WithSessions, within_session
from headgate.lake.tables.data_file import STATE
from headgate.lake.tables.frames import Projection
from headgate.lake.tables.payloads.gold import GONE

_OPEN = "open"
"""``_late`` of an open row: it is no pair."""
_LATE_PARTS = 64


class SessionAggregator(Aggregator):
    """``gone`` counts the open rows that are in a session with another begin now, ``longest`` is
    the length of the longest session in microseconds."""

    counted = ("_gone",)

    def __init__(self, table: GoldTable, end: Column) -> None:
        super().__init__(table, end)
        self._with_sessions = WithSessions()
        key = key_of_pair(table)
        begin, to = F.unix_micros(BEGIN), F.unix_micros(END)
        ends = begin.alias("_from"), to.alias("_to")
        self._interval = Projection("*", key.alias("_by"), *ends)
        is_on_time = F.expr(ON_TIME)
        self._interval_if_on_time = Projection(
            "*",
            F.when(is_on_time, key).otherwise(_late_key(table)).alias("_by"),
            F.when(is_on_time, begin).alias("_from"),
            to.alias("_to"),
        )
        self._open_interval = Projection(
            *(key_of_row(table).alias("_by"), *ends, F.lit(_OPEN).alias("_late")),
            *(F.col(STATE).alias("_old"), F.col("updated_at").alias("_old_update")),
        )
        self._session_states = _session_states(table)
        self._merging = _merging(table)
        end_of_session = F.timestamp_micros(within_session(F.max("_to")))
        self._bounds = {BEGIN: F.timestamp_micros("_begin"), END: end_of_session}

    def more_counts(self) -> Sequence[Column]:
        length = F.unix_micros(END) - F.unix_micros(BEGIN)
        return F.sum("_gone").alias(GONE), F.max(length).alias("longest")

    def merging(self, pairs: DataFrame, opened: DataFrame) -> DataFrame:
        rows = self._interval_if_on_time.of(pairs)
        both = rows.unionByName(self._open_interval.of(opened), allowMissingColumns=True)
        sessions = self._with_sessions.of(both).groupBy("_by", "_begin")
        return self._merging.of(sessions.agg(*self._session_states))

    def keyed(self, pairs: DataFrame) -> DataFrame:
        sessions = self._with_sessions.of(self._interval.of(pairs))
        return super().keyed(sessions.withColumns(self._bounds))


def _late_key(table: GoldTable) -> Column:
    """As ``key_of_pair``, of a late pair, which is only counted. There are several such keys: a
    load may have millions of late pairs, and one task sorts the pairs of a key."""
    part = F.pmod(F.xxhash64(*SILVER_IDENTITY), F.lit(_LATE_PARTS)).cast("int")
    nulls = (F.lit(None).cast(str(b.type)).alias(b.name) for b in table.by)
    return F.struct((part + 1).alias("_"), *nulls)


def _session_states(table: GoldTable) -> list[Column]:
    """The aggregates of a session: the state of its new rows, and its open rows."""
    is_pair = F.col("_late").isNull() | (F.col("_late") != _OPEN)
    *fields, _ = partials([on_time(m) for m in table.measures])
    return [
        *fields,
        F.count(F.when(is_pair, 1)).alias("_pairs"),
        F.max("_to").alias("_end"),
        F.collect_list("_old").alias("_olds"),
        F.max("_old_update").alias("old_update"),
        F.count(F.when(~is_pair & (F.col("_from") != F.col("_begin")), 1)).alias("_gone"),
    ]


def _merging(table: GoldTable) -> Projection:
    bounds = {BEGIN: F.timestamp_micros("_begin"), END: F.timestamp_micros("_end")}
    named = (bounds[name].alias(name) for name in (BEGIN, END))
    keys = (F.col(f"_by.`{b.name}`").alias(b.name) for b in table.by)
    key = F.when(F.col("_by._") == 0, F.struct(*named, *keys))
    several = F.expr(all_merged(table.measures, "_olds"))
    # The function that merges several is interpreted by Spark, not compiled.
    old = F.when(F.size("_olds") > 1, several).otherwise(F.get("_olds", F.lit(0)))
    new = F.when(F.col("_pairs") > 0, new_state(table.measures))
    return Projection(
        *(key.alias("_key"), new.alias("new"), old.alias("old")),
        *("old_update", "_pairs", "_gone"),
    )
