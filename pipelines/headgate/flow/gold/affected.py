"""Which results a correction may change, and the pairs and rows that belong to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headgate.declaration.contracts.operator import begin_of, key_of
from headgate.declaration.model import GoldTable
from headgate.flow.gold.aggregator import Aggregator
from headgate.lake.tables.frames import struct_of
from headgate.lake.tables.spans import EVERYTHING, Span, united

RowsWithin = Callable[[Sequence[Span]], DataFrame]
"""Reads all rows of a gold table whose results have a time in one of some spans, and perhaps
others, with the column ``final``."""


class AffectedResults:
    """Of a fold in which a pair alone says what its result is. An *affected* frame has ``_key`` of
    each affected result."""

    changes_open_rows: ClassVar[bool] = False
    """Whether a late pair may belong to a result that is open."""

    def __init__(self, table: GoldTable, aggregator: Aggregator, end: Column) -> None:
        """``end`` as in ``Assignment``."""
        self._begin, self._key = begin_of(table), key_of(table)
        self._aggregator, self._end = aggregator, end

    def of(self, pairs: DataFrame, rows: RowsWithin) -> DataFrame:
        """The results that some pairs belong to once they are included."""
        return self._aggregator.keyed(pairs).select("_key").distinct()

    def spans(self, affected: DataFrame) -> list[Span]:
        """The times of some results: disjoint and rising."""
        if not self._begin:
            return [EVERYTHING]
        bounds = affected.select("_key.*").select(F.unix_micros(*self._begin), self._end)
        return united((first, end - 1) for first, end in bounds.distinct().collect())

    def pairs(self, pairs: DataFrame, affected: DataFrame) -> DataFrame:
        """Those of some included pairs that belong to affected results."""
        return self._aggregator.keyed(pairs).join(affected, "_key", "left_semi").drop("_key")

    def rows(self, rows: DataFrame, affected: DataFrame) -> DataFrame:
        """Those of some rows of the gold table that are affected results."""
        keyed = rows.withColumn("_key", struct_of(self._key))
        return keyed.join(affected, "_key", "left_semi").drop("_key")

    def others(self, rows: DataFrame, affected: DataFrame) -> DataFrame:
        """Those of some rows of the gold table that ``rows`` leaves out."""
        keyed = rows.withColumn("_key", struct_of(self._key))
        return keyed.join(affected, "_key", "left_anti").drop("_key")

    def of_rows(self, affected: DataFrame, rows: DataFrame) -> DataFrame:
        """Those of some affected results that have one of some rows of the gold table."""
        keys = rows.select(struct_of(self._key).alias("_key"))
        return affected.join(keys, "_key", "left_semi")

    def inside(
        self, rows: DataFrame, computed: DataFrame, span: Span, *, only_final: bool
    ) -> tuple[DataFrame, ...]:
        """Those of the table's rows, and of rows that were computed for the same time, that lie
        completely in a span."""
        begin = F.unix_micros(*self._begin)
        is_inside = (begin >= span[0]) & (self._end <= span[1] + 1)
        if only_final:
            is_inside &= F.col("final")
        return rows.where(is_inside), computed.where(is_inside)
