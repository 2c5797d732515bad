"""Compares sums over a version of a gold table with sums over its silver table.

Each row of silver that passes the table's ``where`` is in the same number of pairs, and each pair
is folded or waits in the late table. So the sum of gold is the sum over all pairs of silver, minus
the sum over the late table. All three tables are read as of one batch, even if they have processed
later ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from functools import reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType, DoubleType, FloatType

from headgate.declaration.contracts.operator import operator_of
from headgate.declaration.expectations.result import RuleResult
from headgate.declaration.model import GoldTable
from headgate.declaration.names import REPLAYED
from headgate.declaration.suites.model import Rule
from headgate.lake.tables.frames import TableRows
from headgate.lake.tables.history import files_at
from headgate.lake.tables.table import Table

_DIGITS = 100  # more than a sum of decimals has


@dataclass(frozen=True)
class Sums:
    """The sums of one rule. None stands for a sum that does not fit its type."""

    gold: Decimal | float | None
    silver: Decimal | float | None
    late: Decimal | float | None


class SilverSums:
    """The rules of one gold table that also use its silver table."""

    def __init__(
        self, spark: SparkSession, declared: GoldTable, silver: Table, late: Table
    ) -> None:
        self._declared = declared
        self._pairs = operator_of(declared).pairs_per_row(declared.operator)
        self._silver, self._late = silver.reader(), late.reader()
        self._silver_rows, self._late_rows = (
            TableRows(spark, self._silver),
            TableRows(spark, self._late),
        )

    def validate(self, version: DataFrame, rules: Sequence[Rule], n: int) -> tuple[RuleResult, ...]:
        """The results of some rules over a version of the table at batch id ``n``. Raises
        LogGapError if the log of another table no longer has this batch."""
        if not rules:
            return ()
        assert self._pairs is not None  # otherwise the declaration is refused
        silver = self._silver_rows.of(files_at(self._silver, n))
        if self._declared.where is not None:
            silver = silver.where(self._declared.where)
        late = self._late_rows.of(files_at(self._late, n)).where(F.col(REPLAYED).isNull())
        sums = _sums(version, silver, late, rules)
        return tuple(compare_sums(rule, sums[rule.id], self._pairs) for rule in rules)


def compare_sums(rule: Rule, sums: Sums, pairs: int) -> RuleResult:
    """The result of a rule for its sums. ``pairs`` is the number of results that a row of silver is
    in."""
    found = (sums.gold, sums.silver, sums.late)
    if any(each is None or not math.isfinite(each) for each in found):
        return RuleResult.of(rule, error="a sum is not a finite number")
    gold, silver, late = (Decimal(each or 0) for each in found)
    with localcontext(prec=_DIGITS):
        wanted = pairs * silver - late
        is_met = abs(gold - wanted) <= Decimal(str(rule.arguments.get("tolerance", 0)))
    observed = f"{_shown(gold)}, and {_shown(wanted)} in silver"
    result = RuleResult.of(rule, met=is_met, observed=observed)
    return replace(result, accepts=(_shown(gold - wanted),))


def _shown(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _sums(
    gold: DataFrame, silver: DataFrame, late: DataFrame, rules: Sequence[Rule]
) -> Mapping[str, Sums]:
    """The sums of each rule, in one job."""
    # The columns get names of their own, because a rule may have any id.
    names = {rule.id: f"_{number}" for number, rule in enumerate(rules)}
    of_gold = {names[rule.id]: F.col(f"`{rule.arguments['column']}`") for rule in rules}
    of_silver = {names[rule.id]: F.expr(f"({rule.arguments['silver']})") for rule in rules}
    types = {name: _type(gold, of_gold[name], silver, of_silver[name]) for name in of_gold}
    sides = (("gold", gold, of_gold), ("silver", silver, of_silver), ("late", late, of_silver))
    rows = reduce(
        DataFrame.unionByName,
        (
            frame.select(
                F.lit(side).alias("_side"), *(c.cast(types[n]).alias(n) for n, c in values.items())
            )
            for side, frame, values in sides
        ),
    )
    added = [
        F.when(F.count(n) == 0, F.lit(0).cast(type_)).otherwise(F.sum(n).cast(type_)).alias(n)
        for n, type_ in types.items()
    ]
    found = {row["_side"]: row for row in rows.groupBy("_side").agg(*added).collect()}
    return {
        id_: Sums(*(found[side][n] if side in found else 0.0 for side, _, _ in sides))
        for id_, n in names.items()
    }


def _type(gold: DataFrame, column: Column, silver: DataFrame, expression: Column) -> str:
    """The type in which both sides are added up: an exact one, unless a side has inexact values."""
    types = [
        f.select(c).schema.fields[0].dataType for f, c in ((gold, column), (silver, expression))
    ]
    if any(isinstance(type_, FloatType | DoubleType) for type_ in types):
        return "double"
    scale = max(type_.scale if isinstance(type_, DecimalType) else 0 for type_ in types)
    return f"decimal(38,{scale})"
