"""Measures over the rows of one window and key: exact where the result can be exact."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from decimal import Context, Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from tests.oracle.parse import BITS, rounded
from tests.oracle.rules import Expression, Measure, Row

WIDE = Context(prec=200)
SPREADS = {
    "stddev": statistics.stdev,
    "stddev_pop": statistics.pstdev,
    "variance": statistics.variance,
    "var_pop": statistics.pvariance,
}
COUNTS: dict[str, Callable[[list[Any]], int]] = {
    "count": len,
    "count_if": sum,
    "count_distinct": lambda values: len(set(values)),
    "approx_count_distinct": lambda values: len(set(values)),
}


def measure(rules: Measure, rows: list[Row]) -> Any:
    """One measure; nulls are skipped. Approximate ones are computed exactly."""
    rows = [row for row in rows if rules.where is None or rules.where(row)]
    if rules.argument is None:
        return len(rows)
    if rules.order is not None:
        return by_order(rules, rules.argument, rules.order, rows)
    pairs = [(position(row), rules.argument(row)) for row in rows]
    pairs = [(where, value) for where, value in pairs if value is not None]
    values = [value for _, value in pairs]
    if rules.function in COUNTS:
        return COUNTS[rules.function](values)
    if rules.function == "collect_list":
        return [value for _, value in sorted(pairs, key=lambda pair: pair[0])][: rules.most]
    if not values:
        return None
    if rules.function in ("first", "last"):
        pick = min if rules.function == "first" else max
        return pick(pairs, key=lambda pair: pair[0])[1]
    if rules.function in ("min", "max", "bool_and", "bool_or"):
        found = min(values) if rules.function in ("min", "bool_and") else max(values)
        return found + 0.0 if isinstance(found, float) else found  # -0.0 becomes 0.0
    if rules.function == "percentile":
        return percentile([float(value) for value in values], rules.share)
    if rules.function in SPREADS:
        of_sample = rules.function in ("stddev", "variance")
        floats = [float(value) for value in values]
        return None if of_sample and len(values) < 2 else SPREADS[rules.function](floats)
    return {"sum": total, "avg": mean}[rules.function](values, rules.type)


def position(row: Row) -> tuple[Any, int, int, int]:
    return row["_event_time"], row["_partition"], row["_offset"], row["_item"]


def by_order(rules: Measure, argument: Expression, order: Expression, rows: list[Row]) -> Any:
    """The argument, or null, of the row with the least or greatest order, or of the rows with the
    greatest ones; NaN is the greatest. Of equal orders, the first row is the least one and the last
    row the greatest one. Rows whose order is null are left out."""
    ranks = [(order(row), position(row), argument(row)) for row in rows]
    found = [(ranked(rank), at, value) for rank, at, value in ranks if rank is not None]
    found.sort(key=lambda one: one[:2], reverse=rules.function != "min_by")
    values = [value for _, _, value in found]
    return values[: rules.most] if rules.function == "top_n" else next(iter(values), None)


def ranked(value: Any) -> tuple[bool, Any]:
    """A value in the order of Spark, in which NaN is the greatest number."""
    return (True, 0) if value != value else (False, value)


def percentile(values: list[float], share: float) -> float:
    """The value that is greater than this share of the others; between two values, a point on the
    line from one to the other."""
    ordered = sorted(values, key=ranked)
    place = (len(ordered) - 1) * share
    before, after = ordered[math.floor(place)], ordered[math.ceil(place)]
    if before == after:
        return before + 0.0  # -0.0 becomes 0.0
    return before * (1 - place % 1) + after * (place % 1) if place % 1 else before


def total(values: list[Any], type_: str) -> Any:
    """The sum; null if the exact sum exceeds the type of the result, or 37 digits."""
    if type_ in BITS:
        exact = sum(values)
        return exact if -(1 << 63) <= exact < 1 << 63 else None
    if type_.startswith("decimal"):
        return fitted(short(sum((Fraction(value) for value in values), Fraction(0)), type_), type_)
    return math.fsum(values)


def mean(values: list[Any], type_: str) -> Any:
    if type_.startswith("decimal"):
        scale = int(type_[:-1].split(",")[1]) - 4  # the scale of the values
        exact = sum((Fraction(value) for value in values), Fraction(0))
        if abs(exact) < Fraction(10) ** (28 - scale):
            return fitted(exact / len(values), type_)
        decimals = max(scale + 1, 6)
        whole = short(exact, f"decimal(38,{scale})")
        return fitted(fitted(whole and whole / len(values), f"decimal(38,{decimals})"), type_)
    return math.fsum(float(value) for value in values) / len(values)


def short(exact: Fraction | None, type_: str, digits: int = 37) -> Fraction | None:
    """``exact``, or null if it has more than ``digits`` digits, including the decimals of
    decimal(p,s)."""
    scale = int(type_[:-1].split(",")[1])
    return exact if exact is not None and abs(exact) < Fraction(10) ** (digits - scale) else None


def fitted(exact: Fraction | Decimal | None, type_: str) -> Decimal | None:
    """``exact`` as decimal(p,s), half up; null if it does not fit."""
    if exact is None:
        return None
    precision, scale = (int(part) for part in type_[len("decimal(") : -1].split(","))
    scaled = Fraction(exact) * 10**scale  # rounded once, from the exact value
    units = int(abs(scaled) + Fraction(1, 2))
    number = Decimal(units if scaled >= 0 else -units).scaleb(-scale, context=WIDE)
    try:
        return rounded(number, precision, scale)
    except InvalidOperation:
        return None
