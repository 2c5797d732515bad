"""Compares the rows of a gold table with those that a backfill gives.

Numbers of floating point that are nearly equal are the same (``lake.tables.row_values``). The
digest of a side is the number of its rows, and the sums modulo 2^64 of two 64-bit hashes of each
row, so the order of rows does not matter. If two numbers are the same in this sense, both digests
use the table's number. Digests use rounded numbers, so that rows that are computed again usually
have the same digest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import NumericType

from headgate.flow.operations.patch import CHANGE, CHANGED, EQUAL, GONE, NEW, RowComparison
from headgate.history.backfill.report import ColumnDifference
from headgate.lake.tables.row_changes import MOST, RowChange
from headgate.lake.tables.row_values import (
    SEEDS,
    is_floating,
    rounded,
    row_hashes,
    text_columns,
    values_of,
)


@dataclass(frozen=True)
class ComparedCounts:
    """The counts of a comparison: rows by their change, and the digests of both sides. ``span`` has
    the first and the last begin of the rows that differ, in microseconds since 1970 UTC."""

    rows: dict[str, int]
    windows: int
    windows_equal: int
    live: str
    backfilled: str
    span: tuple[int, int] | None

    @property
    def differing(self) -> int:
        return sum(self.rows[change] for change in (CHANGED, NEW, GONE))


class Comparison(RowComparison):
    """The comparison that a report shows. The first column of ``key`` is the begin of a result."""

    def counts(self, compared: DataFrame) -> ComparedCounts:
        begin = F.coalesce(f"new.{self._key[0]}", f"old.{self._key[0]}")
        differs = F.col(CHANGE) != EQUAL
        found = compared.agg(
            *(F.count(F.when(F.col(CHANGE) == c, 1)).alias(c) for c in (EQUAL, CHANGED, NEW, GONE)),
            F.count_distinct(begin).alias("windows"),
            F.count_distinct(F.when(differs, begin)).alias("differing"),
            *self._sums(compared),
            F.min(F.when(differs, F.unix_micros(begin))).alias("first"),
            F.max(F.when(differs, F.unix_micros(begin))).alias("last"),
        ).collect()[0]
        rows = {change: int(found[change]) for change in (EQUAL, CHANGED, NEW, GONE)}
        sizes = {"old": rows[EQUAL] + rows[CHANGED] + rows[GONE]}
        sizes["new"] = rows[EQUAL] + rows[CHANGED] + rows[NEW]
        live, backfilled = (_digest(sizes[side], side, found) for side in ("old", "new"))
        span = None if found["first"] is None else (int(found["first"]), int(found["last"]))
        windows, equal = int(found["windows"]), int(found["windows"]) - int(found["differing"])
        return ComparedCounts(rows, windows, equal, live, backfilled, span)

    def columns(self, compared: DataFrame, counts: ComparedCounts) -> tuple[ColumnDifference, ...]:
        """The columns that have other values in some rows, in the order of the table."""
        if not counts.rows[CHANGED]:
            return ()
        changed = compared.where(F.col(CHANGE) == CHANGED)
        aggregates: list[Column] = []
        for name in self._values:
            aggregates.append(F.count(F.when(~self.is_same(name), 1)).alias(f"{name} rows"))
            aggregates.append(self._largest(name).alias(f"{name} most"))
        (found,) = changed.agg(*aggregates).collect()
        return tuple(
            ColumnDifference(name, int(found[f"{name} rows"]), found[f"{name} most"])
            for name in self._values
            if found[f"{name} rows"]
        )

    def rows(self, compared: DataFrame, counts: Mapping[str, int]) -> tuple[RowChange, ...]:
        """Some rows that differ, at most ``MOST``: of each kind of change as many, the first ones
        in the order of their keys. ``counts`` has the number of rows of each kind."""
        return tuple(self._rows(compared, counts))

    def _rows(self, compared: DataFrame, counts: Mapping[str, int]) -> Iterator[RowChange]:
        kinds = [each for each in (CHANGED, NEW, GONE) if counts.get(each)]
        names = (*self._key, *self._values)
        for change in kinds:
            rows = compared.where(F.col(CHANGE) == change)
            order = [F.coalesce(f"new.`{name}`", f"old.`{name}`") for name in self._key]
            sides = (text_columns(names, side).alias(side) for side in ("old", "new"))
            ordered = rows.orderBy(*order) if order else rows  # without keys, there is one row
            for row in ordered.limit(MOST // len(kinds)).select(*sides).collect():
                yield RowChange(values_of(row["old"]), values_of(row["new"]))

    def _largest(self, name: str) -> Column:
        if not isinstance(self._types[name], NumericType):
            return F.lit(None).cast("double")
        old, new = (F.col(f"{side}.`{name}`").cast("double") for side in ("old", "new"))
        return F.max(F.abs(new - old))

    def _sums(self, compared: DataFrame) -> Iterator[Column]:
        for side in ("old", "new"):
            values = [*(self.side(side, n) for n in self._key)]
            for name in self._values:
                value = self.side(side, name)
                if side == "new" and is_floating(self._types[name]):
                    same = F.col("old").isNotNull() & self.is_same(name)
                    value = F.when(same, self.side("old", name)).otherwise(value)
                values.append(rounded(value) if is_floating(self._types[name]) else value)
            for number, hashed in enumerate(row_hashes(values)):
                yield F.sum(F.when(F.col(side).isNotNull(), hashed)).alias(f"{side}{number}")


def _digest(rows: int, side: str, found: Any) -> str:
    hashes = (int(found[f"{side}{number}"] or 0) % (1 << 64) for number in range(len(SEEDS)))
    return f"{rows}-{''.join(f'{each:016x}' for each in hashes)}"
