"""Exact aggregates of all values of a column.

Whole numbers and decimals are compared and added up as such, never as doubles. Doubles are compared
with the double nearest to a bound. NaN is a value: it is equal to itself, and meets no bound.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Context, Decimal, Inexact, localcontext
from fractions import Fraction
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.declaration.quantities import parse_duration
from headgate.declaration.suites.arguments import BEFORE_NOW, truth
from headgate.declaration.suites.model import Rule

_WIDEST = 76
_DIGITS_OF_SQUARES = 200
_DIGITS_OF_DOUBLES = 1_500
_MOST_SHOWN = 20
CUT = ", ..."
"""What follows the first of many observed values."""


class Values:
    """The columns of a version. Nulls are not values."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self.of = cache(self._of)
        self.distinct = cache(self._distinct)
        self.total = cache(self._total)

    @property
    def rows(self) -> int:
        return int(self.table.num_rows)

    def type(self, name: str) -> pa.DataType:
        return self.table.schema.field(name).type

    def count(self, name: str) -> int:
        return len(self.of(name))

    def _of(self, name: str) -> pa.Array:
        return _in_one_form(self.table[name].drop_null().combine_chunks())

    def _distinct(self, name: str) -> Counter[Any]:
        """The number of occurrences of each value. NaN is one value."""
        pairs = pc.value_counts(self.of(name)).to_pylist()
        return Counter({pair["values"]: pair["counts"] for pair in pairs})

    def distinct_count(self, name: str) -> int:
        return len(pc.unique(self.of(name)))

    def _total(self, name: str) -> Any:
        """The sum of numbers, or the number of ``true`` values."""
        column = self.of(name)
        if pa.types.is_floating(column.type):
            return _sum(column.to_pylist())
        return Fraction(pc.sum(self._exact(name)).as_py() or 0)

    def _exact(self, name: str) -> pa.Array:
        """Numbers as decimals wide enough for their sum. Raises ValueError for other values."""
        column = self.of(name)
        if pa.types.is_boolean(column.type):
            column = column.cast(pa.int8())
        if pa.types.is_decimal(column.type):
            return column.cast(pa.decimal256(_WIDEST, column.type.scale))
        if not pa.types.is_integer(column.type):
            raise ValueError(f"the values of {name!r} are not numbers")
        return column.cast(pa.decimal256(_WIDEST, 0))

    def has_nan(self, name: str) -> bool:
        column = self.of(name)
        return pa.types.is_floating(column.type) and bool(pc.any(pc.is_nan(column)).as_py())

    def end(self, name: str, which: str) -> Any:
        """The smallest or the greatest value (``min`` or ``max``); NaN if there is a NaN."""
        if self.has_nan(name):
            return math.nan
        return _plain(pc.min_max(self.of(name))[which].as_py())

    def mean(self, name: str) -> Any:
        count = self.count(name)
        return self.total(name) / count if count else None

    def median(self, name: str) -> Any:
        column, is_double = self.of(name), pa.types.is_floating(self.type(name))
        if self.has_nan(name):
            return math.nan
        values = column if is_double else self._exact(name)
        if not len(values):
            return None
        order = pc.array_sort_indices(column)
        ends = [
            values[order[i].as_py()].as_py() for i in ((len(values) - 1) // 2, len(values) // 2)
        ]
        return sum(ends if is_double else map(Fraction, ends)) / 2

    def variance(self, name: str) -> Any:
        """The variance of a sample; None if there are fewer than two values."""
        count = self.count(name)
        if count < 2:
            return None
        mean, values = self.mean(name), self.of(name).to_pylist()
        if pa.types.is_floating(self.type(name)):
            return _sum([(value - mean) * (value - mean) for value in values]) / (count - 1)
        with localcontext(prec=_DIGITS_OF_SQUARES):
            squares = sum(value * value for value in values)
        return (Fraction(squares) - count * mean * mean) / (count - 1)

    def numbered(self, name: str) -> Any:
        """A column of pandas with a number for each row: equal values have equal numbers, nulls are
        null."""
        column = _in_one_form(self.table[name].combine_chunks())
        return column.dictionary_encode().indices.to_pandas()

    def doubles(self, name: str) -> Any:
        """A column of pandas with the doubles nearest to the numbers."""
        return self.table[name].cast(pa.float64(), safe=False).to_pandas()

    def are_finite(self, name: str) -> bool:
        column = self.of(name)
        return not pa.types.is_floating(column.type) or bool(
            pc.all(pc.is_finite(column), min_count=0).as_py()
        )


def _in_one_form(column: pa.Array) -> pa.Array:
    """Writes zero and NaN in one form each: they have several forms, which are equal."""
    if not pa.types.is_floating(column.type):
        return column
    nan = pa.scalar(math.nan, column.type)
    return pc.if_else(pc.is_nan(column), nan, pc.add(column, pa.scalar(0.0, column.type)))


def _sum(values: Sequence[float]) -> float:
    """The double nearest to the sum, whatever the order of the values is."""
    try:
        return math.fsum(values)
    except ValueError:  # both infinities
        return math.nan
    except OverflowError:  # of an intermediate sum
        with localcontext(Context(prec=_DIGITS_OF_DOUBLES, traps=[])):
            return float(sum(map(Decimal, values)))


def _plain(value: Any) -> Any:
    """A whole number or decimal as a fraction, to compare it exactly; other values as they are."""
    is_exact = isinstance(value, int | Decimal) and not isinstance(value, bool)
    return Fraction(value) if is_exact else value


def aggregated(rule: Rule, values: Values, now: datetime) -> tuple[bool, str | None]:
    """Whether a version meets a rule of ``AGGREGATES``, and the observed value as text. Raises
    ValueError, or the error of Arrow, if the values do not fit."""
    name, given = str(rule.expectation), rule.arguments
    if name in _SETS:
        return _compared(name, given, values)
    if name == _ROWS:
        return values.rows == given["value"], str(values.rows)
    value = AGGREGATES[name](values, given.get("column", ""))
    if value is None:
        return False, None
    ends = {
        key: _bound(given[key], value, now) for key in ("min_value", "max_value") if key in given
    }
    compared, shown = value, _shown(value)
    if isinstance(value, date) and not isinstance(value, datetime):
        compared = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if name == _DEVIATION:
        shown = _shown(math.sqrt(value))
        if isinstance(value, Fraction):
            ends = {key: end * abs(end) for key, end in ends.items()}
        else:
            compared = math.sqrt(value)
    return _is_between(compared, ends, given), shown


def _is_between(value: Any, ends: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Whether a value is within its bounds. NaN is within no bound."""
    met = []
    if (low := ends.get("min_value")) is not None:
        met.append(value > low if given.get("strict_min") else value >= low)
    if (high := ends.get("max_value")) is not None:
        met.append(value < high if given.get("strict_max") else value <= high)
    return all(met)


def _bound(given: Any, value: Any, now: datetime) -> Any:
    """A bound in the type in which it is compared with a value."""
    if isinstance(value, date):
        found = moment(given, now)
        return _aware(found if isinstance(found, datetime) else datetime.fromisoformat(str(found)))
    if isinstance(value, float):
        return float(given)
    if isinstance(value, Fraction):
        return Fraction(str(given))
    raise ValueError(f"{type(value).__name__} values have no order here")


def moment(value: Any, now: datetime) -> Any:
    """A time before ``now``, without a zone, if ``value`` means one; otherwise ``value``."""
    if isinstance(value, str) and (found := BEFORE_NOW.fullmatch(value)):
        return now.astimezone(UTC).replace(tzinfo=None) - parse_duration(found[1])
    return value


def _compared(name: str, given: Mapping[str, Any], values: Values) -> tuple[bool, str | None]:
    """Whether the values of a column meet a rule with a set of values, and these values as text."""
    column = given["column"]
    wanted = {_member(value, values.type(column)) for value in given["value_set"]}
    counted = values.distinct(column)
    if name == _CONTAIN:
        missing = [value for value in wanted if value not in counted]
        return not missing, f"without {_listed(missing)}" if missing else None
    if name == _MOST_COMMON:
        most = max(counted.values(), default=0)
        modes = [value for value, count in counted.items() if count == most]
        good = [value for value in modes if value in wanted]
        is_met = bool(good) if given.get("ties_okay") else len(modes) == len(good) == 1
        return is_met, _listed(modes)
    is_met = counted.keys() == wanted if name == _EQUAL else counted.keys() <= wanted
    return is_met, _listed(list(counted))


def _member(text: str, type_: pa.DataType) -> Any:
    """A value of a set in the type in which it is compared with the values of a column."""
    if pa.types.is_floating(type_):
        return float(text)
    if pa.types.is_integer(type_) or pa.types.is_decimal(type_):
        return Fraction(text)
    if pa.types.is_date(type_):
        return date.fromisoformat(text)
    if pa.types.is_timestamp(type_):
        return _aware(datetime.fromisoformat(text))
    return truth(text) if pa.types.is_boolean(type_) else text


def _aware(at: datetime) -> datetime:
    """A time without a zone is in UTC."""
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


def _listed(values: Sequence[Any]) -> str:
    more = CUT if len(values) > _MOST_SHOWN else ""
    return f"[{', '.join(map(_shown, sorted(values)[:_MOST_SHOWN]))}{more}]"


def _shown(value: Any) -> str:
    value = _plain(value)
    if isinstance(value, datetime):
        return str(value.replace(tzinfo=None))
    if not isinstance(value, Fraction):
        return str(value)
    with localcontext(prec=_WIDEST) as context:
        found = Decimal(value.numerator) / Decimal(value.denominator)
        return str(float(value)) if context.flags[Inexact] else f"{found:f}"


def _share(part: int, whole: int) -> Fraction:
    return Fraction(part, whole) if whole else Fraction(0)


_CONTAIN = "expect_column_distinct_values_to_contain_set"
_EQUAL = "expect_column_distinct_values_to_equal_set"
_MOST_COMMON = "expect_column_most_common_value_to_be_in_set"
_ROWS = "expect_table_row_count_to_equal"
_DEVIATION = "expect_column_stdev_to_be_between"
_SETS = ("expect_column_distinct_values_to_be_in_set", _CONTAIN, _EQUAL, _MOST_COMMON)
AGGREGATES: Mapping[str, Callable[[Values, str], Any]] = {
    _ROWS: lambda values, _: Fraction(values.rows),
    "expect_table_row_count_to_be_between": lambda values, _: Fraction(values.rows),
    "expect_column_min_to_be_between": lambda values, name: values.end(name, "min"),
    "expect_column_max_to_be_between": lambda values, name: values.end(name, "max"),
    "expect_column_sum_to_be_between": lambda values, name: values.total(name),
    "expect_column_mean_to_be_between": Values.mean,
    "expect_column_median_to_be_between": Values.median,
    _DEVIATION: Values.variance,
    "expect_column_unique_value_count_to_be_between": lambda values, name: Fraction(
        values.distinct_count(name)
    ),
    "expect_column_proportion_of_unique_values_to_be_between": lambda values, name: _share(
        values.distinct_count(name), values.count(name)
    ),
    "expect_column_proportion_of_non_null_values_to_be_between": lambda values, name: _share(
        values.count(name), values.rows
    ),
    **{name: lambda values, name: values.distinct(name) for name in _SETS},
}
"""The expectations about all values of a column, and the function that gives the observed value."""
