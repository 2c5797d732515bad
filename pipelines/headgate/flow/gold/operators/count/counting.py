"""Puts the rows of a batch into windows of N rows: one pass over the rows of the batch and the open
rows.

Silver has the rows of a partition in the order of their offsets, so the rows of a batch come after
those of the open window. Corrected copies of a replay are in a partition of their own, which they
continue. The records of a load have lower offsets than the stream, and come later: they are a log
of their own. So the place of a row in its window depends on silver alone, and not on batches.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from headgate.declaration.model import GoldTable
from headgate.flow.gold.aggregator import (
    Aggregator,
    key_of_pair,
    key_of_row,
    new_state,
    on_time,
    partials,
)
from headgate.flow.gold.pairs import Assignment
from headgate.lake.tables.data_file import STATE
from headgate.lake.tables.frames import Projection
from headgate.lake.tables.load import LOG_BITS

_NEVER = 1 << 62
_LOG = ("_by", "_partition", "_log")
_PLACE = ("_offset", "_item")
_OPEN = "open"
"""``_late`` of an open row: it is no pair."""


def assignment(size: int) -> Assignment:
    """The pair of a row has the row's own place. A window is final when it has ``size`` rows,
    whatever the watermark is."""
    own = Projection(
        "*",
        F.col("_partition").alias("window_partition"),
        F.col("_offset").alias("window_offset"),
        F.col("_item").alias("window_item"),
        F.lit(1).cast("bigint").alias("window_rows"),
    )
    is_full = F.col("window_rows") >= F.lit(size)
    never = F.lit(_NEVER)
    end = F.when(is_full, F.lit(-_NEVER)).otherwise(never)
    return Assignment(own.of, end, late_from=never, closed_by=never)


class CountAggregator(Aggregator):
    """A window is identified by its first row. A key whose last window is full has no open row, and
    its next row is the first of a window."""

    def __init__(self, table: GoldTable, end: Column, size: int) -> None:
        super().__init__(table, end)
        self._row = Projection(
            "*", key_of_pair(table).alias("_by"), _log("_offset"), F.lit(1).alias("_rows")
        )
        self._open_row = Projection(
            key_of_row(table).alias("_by"),
            *(F.col(f"window{name}").alias(name) for name in ("_partition", *_PLACE)),
            _log("window_offset"),
            F.col("window_rows").alias("_rows"),
            F.lit(_OPEN).alias("_late"),
            F.col(STATE).alias("_old"),
            F.col("updated_at").alias("_old_update"),
        )
        so_far = Window.partitionBy(*_LOG).orderBy(*_PLACE)
        so_far = so_far.rowsBetween(Window.unboundedPreceding, Window.currentRow)
        self._counted = Projection("*", F.sum("_rows").over(so_far).alias("_nth"))
        self._numbered = Projection("*", F.expr(f"(_nth - 1) div {size}L").alias("_number"))
        of_window = Window.partitionBy(*_LOG, "_number")
        self._places = Projection("*", _first().over(of_window).alias("_first"))
        self._bounds = {
            "window_partition": F.col("_partition"),
            "window_offset": F.col("_first._offset"),
            "window_item": F.col("_first._item"),
            "window_rows": F.sum("_rows").over(of_window),
        }
        fields = partials([on_time(measure) for measure in table.measures])[:-1]
        self._window_states = [
            *fields,
            F.count(F.when(F.col("_late").isNull(), 1)).alias("_pairs"),
            F.sum("_rows").alias("_all"),
            _first().alias("_first"),
            F.first("_old", ignorenulls=True).alias("old"),
            F.max("_old_update").alias("old_update"),
        ]
        self._merging = _merging(table)

    def merging(self, pairs: DataFrame, opened: DataFrame) -> DataFrame:
        rows = self._row.of(pairs)
        both = rows.unionByName(self._open_row.of(opened), allowMissingColumns=True)
        windows = self._with_numbers(both).groupBy(*_LOG, "_number")
        return self._merging.of(windows.agg(*self._window_states))

    def keyed(self, pairs: DataFrame) -> DataFrame:
        placed = self._places.of(self._with_numbers(self._row.of(pairs)))
        return super().keyed(placed.withColumns(self._bounds))

    def _with_numbers(self, rows: DataFrame) -> DataFrame:
        """Adds ``_number``: which window of its log a row is in, counted from the open one."""
        return self._numbered.of(self._counted.of(rows))


def _log(offset: str) -> Column:
    """0 for the stream, and -k for load k of a partition."""
    return F.least(F.shiftright(offset, LOG_BITS), F.lit(0)).alias("_log")


def _first() -> Column:
    return F.min(F.struct(*_PLACE))


def _merging(table: GoldTable) -> Projection:
    key = F.struct(
        F.col("_partition").alias("window_partition"),
        F.col("_first._offset").alias("window_offset"),
        F.col("_first._item").alias("window_item"),
        F.col("_all").alias("window_rows"),
        *(F.col(f"_by.`{b.name}`").alias(b.name) for b in table.by),
    )
    new = F.when(F.col("_pairs") > 0, new_state(table.measures))
    return Projection(key.alias("_key"), new.alias("new"), "old", "old_update", "_pairs")
