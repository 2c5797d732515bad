"""Compares the rows of a gold table with those that a backfill gives.

Numbers of floating point that are nearly equal are the same (``lake.tables.row_values``). The
digest of a side is the number of its rows, and the sums modulo 2^64 of two 64-bit hashes of each
row, so the order of rows does not matter. If two numbers are the same in this sense, both digests
use the table's number. Digests use rounded numbers, so that rows that are computed again usually
have the same digest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import NumericType, StructType

from headgate.flow.operations.backfill import CHANGE, CHANGED, GONE, NEW
from headgate.history.backfill.report import ColumnDifference
from headgate.lake.tables.frames import struct_of
from headgate.lake.tables.row_changes import MOST, RowChange
from headgate.lake.tables.row_values import (
    NEAR,
    SEEDS,
    comparable,
    is_floating,
    rounded,
    row_hashes,
    text_columns,
    values_of,
)

EQUAL = "equal"


@dataclass(frozen=True)
class ComparedCounts:
    """The counts of a comparison: rows by their change, and the digests of both sides. ``span`` has
    the first and the last begin of the rows that differ, in microseconds since 1970 UTC;
    ``counted`` is the increase of the sum of the table's column of counts."""

    rows: dict[str, int]
    windows: int
    windows_equal: int
    live: str
    backfilled: str
    span: tuple[int, int] | None
    counted: int

    @property
    def differing(self) -> int:
        return sum(self.rows[change] for change in (CHANGED, NEW, GONE))


class Comparison:
    """``key`` are the columns that identify a row; the first is the begin of a result. ``values``
    are the other columns that are compared. ``type_`` is the type of the rows."""

    def __init__(self, key: Sequence[str], values: Sequence[str], type_: StructType) -> None:
        self._key, self._values = tuple(key), tuple(values)
        self._types = {field.name: field.dataType for field in type_}
        self._columns = [field.name for field in type_]

    def of(self, live: DataFrame, backfilled: DataFrame) -> DataFrame:
        """Joins the rows of both sides by key; the columns are ``old``, ``new`` and ``CHANGE``."""
        old, new = (
            rows.select(struct_of(self._key).alias("_key"), struct_of(self._columns).alias(s))
            for rows, s in ((live, "old"), (backfilled, "new"))
        )
        joined = old.join(new, "_key", "full_outer").drop("_key")
        same = F.lit(True)
        for name in self._values:
            same &= self._same(name)
        change = F.when(F.col("old").isNull(), NEW).when(F.col("new").isNull(), GONE)
        return joined.withColumn(CHANGE, change.when(same, EQUAL).otherwise(CHANGED))

    def patch(self, compared: DataFrame) -> DataFrame:
        """The rows that differ, in the form that the operation reads."""
        differing = compared.where(F.col(CHANGE) != EQUAL)
        row = F.when(F.col("new").isNotNull(), F.col("new")).otherwise(F.col("old"))
        return differing.select(CHANGE, row.alias("row")).select(CHANGE, "row.*")

    def counts(self, compared: DataFrame, counter: str | None) -> ComparedCounts:
        """``counter`` is a column of counts, if the table has one."""
        begin = F.coalesce(f"new.{self._key[0]}", f"old.{self._key[0]}")
        differs = F.col(CHANGE) != EQUAL
        found = compared.agg(
            *(F.count(F.when(F.col(CHANGE) == c, 1)).alias(c) for c in (EQUAL, CHANGED, NEW, GONE)),
            F.count_distinct(begin).alias("windows"),
            F.count_distinct(F.when(differs, begin)).alias("differing"),
            *self._sums(compared),
            F.min(F.when(differs, F.unix_micros(begin))).alias("first"),
            F.max(F.when(differs, F.unix_micros(begin))).alias("last"),
            (self._sum("new", counter) - self._sum("old", counter)).alias("counted"),
        ).collect()[0]
        rows = {change: int(found[change]) for change in (EQUAL, CHANGED, NEW, GONE)}
        sizes = {"old": rows[EQUAL] + rows[CHANGED] + rows[GONE]}
        sizes["new"] = rows[EQUAL] + rows[CHANGED] + rows[NEW]
        live, backfilled = (_digest(sizes[side], side, found) for side in ("old", "new"))
        span = None if found["first"] is None else (int(found["first"]), int(found["last"]))
        windows, equal = int(found["windows"]), int(found["windows"]) - int(found["differing"])
        return ComparedCounts(rows, windows, equal, live, backfilled, span, int(found["counted"]))

    def columns(self, compared: DataFrame, counts: ComparedCounts) -> tuple[ColumnDifference, ...]:
        """The columns that have other values in some rows, in the order of the table."""
        if not counts.rows[CHANGED]:
            return ()
        changed = compared.where(F.col(CHANGE) == CHANGED)
        aggregates: list[Column] = []
        for name in self._values:
            aggregates.append(F.count(F.when(~self._same(name), 1)).alias(f"{name} rows"))
            aggregates.append(self._largest(name).alias(f"{name} most"))
        (found,) = changed.agg(*aggregates).collect()
        return tuple(
            ColumnDifference(name, int(found[f"{name} rows"]), found[f"{name} most"])
            for name in self._values
            if found[f"{name} rows"]
        )

    def rows(self, compared: DataFrame, counts: ComparedCounts) -> tuple[RowChange, ...]:
        """Some rows that differ, at most ``MOST``: of each kind of change as many, the first ones
        in the order of their keys."""
        return tuple(self._rows(compared, counts))

    def _rows(self, compared: DataFrame, counts: ComparedCounts) -> Iterator[RowChange]:
        kinds = [each for each in (CHANGED, NEW, GONE) if counts.rows[each]]
        names = (*self._key, *self._values)
        for change in kinds:
            rows = compared.where(F.col(CHANGE) == change)
            order = [F.coalesce(f"new.`{name}`", f"old.`{name}`") for name in self._key]
            sides = (text_columns(names, side).alias(side) for side in ("old", "new"))
            for row in rows.orderBy(*order).limit(MOST // len(kinds)).select(*sides).collect():
                yield RowChange(values_of(row["old"]), values_of(row["new"]))

    def _side(self, side: str, name: str) -> Column:
        """A value, in a form that can be compared."""
        return comparable(F.col(f"{side}.`{name}`"), self._types[name])

    def _same(self, name: str) -> Column:
        old, new = self._side("old", name), self._side("new", name)
        same = old.eqNullSafe(new)
        if is_floating(self._types[name]):
            most = F.greatest(F.abs(old), F.abs(new), F.lit(1.0))
            # An infinity or a NaN is near nothing. In Spark, NaN is greater than every number.
            near = (most < F.lit(inf)) & (F.abs(old - new) <= most * NEAR)
            same |= F.coalesce(near, F.lit(False))
        return same

    def _largest(self, name: str) -> Column:
        if not isinstance(self._types[name], NumericType):
            return F.lit(None).cast("double")
        old, new = (F.col(f"{side}.`{name}`").cast("double") for side in ("old", "new"))
        return F.max(F.abs(new - old))

    def _sums(self, compared: DataFrame) -> Iterator[Column]:
        for side in ("old", "new"):
            values = [*(self._side(side, n) for n in self._key)]
            for name in self._values:
                value = self._side(side, name)
                if side == "new" and is_floating(self._types[name]):
                    same = F.col("old").isNotNull() & self._same(name)
                    value = F.when(same, self._side("old", name)).otherwise(value)
                values.append(rounded(value) if is_floating(self._types[name]) else value)
            for number, hashed in enumerate(row_hashes(values)):
                yield F.sum(F.when(F.col(side).isNotNull(), hashed)).alias(f"{side}{number}")

    def _sum(self, side: str, counter: str | None) -> Column:
        if counter is None:
            return F.lit(0)
        return F.coalesce(F.sum(f"{side}.{counter}"), F.lit(0))


def _digest(rows: int, side: str, found: Any) -> str:
    hashes = (int(found[f"{side}{number}"] or 0) % (1 << 64) for number in range(len(SEEDS)))
    return f"{rows}-{''.join(f'{each:016x}' for each in hashes)}"
