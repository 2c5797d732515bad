"""Proposes a suite that every row of a table meets, from statistics that DuckDB computes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headgate.declaration.expectations.written import WrittenRule, id_for, new_id
from headgate.declaration.names import Columns
from headgate.declaration.suites.model import MOST_RULES
from headgate.declaration.types import STRING, TIMESTAMP, DataType, is_floating, is_number, is_time

MOST_VALUES = 20
"""No set of values is proposed for a column with more different values."""
LONGEST = 100
"""No set of values is proposed for a column with a longer value, in characters."""

# The most useful rules first: they are kept if there are more than a suite may have.
_RANKS = ("unique", "not_be_null", "be_in_set", "be_between", "lengths")


@dataclass(frozen=True)
class ColumnProfile:
    """The values of a table's rows in one column. ``low`` and ``high`` are the smallest and the
    greatest value as text; None if no range can be proposed. For texts they are lengths, and
    ``distinct`` is the number of different texts."""

    type: DataType
    nulls: int
    low: str | None = None
    high: str | None = None
    distinct: int | None = None
    values: tuple[str, ...] = ()


def statistics_sql(table: str, columns: Columns) -> str:
    """A query with one row, which :func:`profile` reads. ``table`` is a name in SQL."""
    asked = [part for name, type_ in columns.items() for part in _asked(name, type_)]
    return f"SELECT {', '.join(['count(*)', *asked])} FROM {table}"


def _asked(name: str, type_: DataType) -> Iterator[str]:
    column = _name(name)
    yield f"count(*) - count({column})"
    if is_floating(type_):
        finite = f"FILTER (WHERE isfinite({column}))"
        yield from (f"CAST({end}({column}) {finite} AS DOUBLE)" for end in ("min", "max"))
        # NaN is greater than all numbers, as in Spark.
        yield f"count(*) FILTER (WHERE {column} = '-infinity')"
        yield f"count(*) FILTER (WHERE isnan({column}) OR {column} = 'infinity')"
    elif is_number(type_) or is_time(type_):
        yield from (f"CAST({end}({column}) AS VARCHAR)" for end in ("min", "max"))
    elif type_ == STRING:
        yield from (f"CAST({end}(length({column})) AS VARCHAR)" for end in ("min", "max"))
        yield f"count(DISTINCT {column})"


def profile(row: Sequence[Any], columns: Columns) -> tuple[int, dict[str, ColumnProfile]]:
    """The number of rows of a table, and the values of its columns, from the row of
    ``statistics_sql``."""
    answers = iter(row[1:])
    return int(row[0]), {name: _profile(answers, type_) for name, type_ in columns.items()}


def _profile(answers: Iterator[Any], type_: DataType) -> ColumnProfile:
    nulls = int(next(answers))
    if is_floating(type_):
        low, high, below, above = (next(answers) for _ in range(4))
        return ColumnProfile(type_, nulls, _digits(low, below), _digits(high, above))
    if is_number(type_) or is_time(type_):
        low, high = next(answers), next(answers)
        if type_ == TIMESTAMP and low is not None:
            # The session is in UTC, as Spark's is.
            low, high = (str(end).removesuffix("+00") for end in (low, high))
        return ColumnProfile(type_, nulls, low, high)
    if type_ == STRING:
        return ColumnProfile(type_, nulls, next(answers), next(answers), int(next(answers)))
    return ColumnProfile(type_, nulls)


def _digits(value: float | None, beyond: int) -> str | None:
    """An end of a range as text; None if there are no finite values, or values beyond all
    numbers."""
    return None if value is None or beyond or not math.isfinite(value) else repr(value)


def few(rows: int, found: Mapping[str, ColumnProfile]) -> tuple[str, ...]:
    """The columns whose values repeat so often that a set of values is a useful rule."""
    return tuple(
        name
        for name, each in found.items()
        if each.distinct and each.distinct <= MOST_VALUES and 2 * each.distinct <= rows - each.nulls
        if int(each.high or 0) <= LONGEST
    )


def values_sql(table: str, columns: Sequence[str]) -> str:
    """A query with one row, which has the sorted values of each column."""
    each = "list_sort(list(DISTINCT {0}) FILTER (WHERE {0} IS NOT NULL))"
    lists = (each.format(_name(column)) for column in columns)
    return f"SELECT {', '.join(lists)} FROM {table}"


def with_values(
    found: Mapping[str, ColumnProfile], values: Mapping[str, Sequence[str]]
) -> dict[str, ColumnProfile]:
    """``found`` with the values of some columns. A rule cannot name a value that Spark would
    substitute."""
    named = {n: held for n, held in values.items() if not any("${" in each for each in held)}
    return {n: replace(each, values=tuple(named.get(n, ()))) for n, each in found.items()}


def proposed(
    rows: int, found: Mapping[str, ColumnProfile], keys: Sequence[str] = ()
) -> tuple[tuple[WrittenRule, ...], int]:
    """The rules, and the number of further rules that a suite has no room for. ``keys`` are columns
    that identify a row, if there are any."""
    taken: set[str] = set()
    rules = [_unique(keys)] if keys else []
    taken.update(each.keys["id"] for each in rules)
    for name, each in found.items():
        for expect, arguments, comment in _proposals(name, rows, each):
            id_ = new_id(id_for(expect, name), taken)
            taken.add(id_)
            rule = {"id": id_, "expect": expect, "column": name, **arguments, "action": "warn"}
            rules.append(WrittenRule(rule, comment))
    kept = set(sorted(range(len(rules)), key=lambda i: _rank(rules[i]))[:MOST_RULES])
    return tuple(r for i, r in enumerate(rules) if i in kept), len(rules) - len(kept)


def _unique(keys: Sequence[str]) -> WrittenRule:
    expect = "expect_compound_columns_to_be_unique"
    about: dict[str, Any] = {"column_list": list(keys)}
    if len(keys) == 1:
        expect, about = "expect_column_values_to_be_unique", {"column": keys[0]}
    rule: dict[str, Any] = {"id": "keys_are_unique", "expect": expect, **about, "action": "warn"}
    return WrittenRule(rule, "one row for each key")


def _rank(rule: WrittenRule) -> int:
    expect = rule.keys["expect"]
    return next(rank for rank, word in enumerate(_RANKS) if word in expect)


def _proposals(
    name: str, rows: int, each: ColumnProfile
) -> Iterator[tuple[str, dict[str, Any], str]]:
    nulls = f"{_number(rows, 'row')}, {_number(each.nulls, 'null') if each.nulls else 'no nulls'}"
    if not each.nulls:
        yield "expect_column_values_to_not_be_null", {}, nulls
    ends = {"min_value": each.low, "max_value": each.high}
    bounds = {key: _bound(end, each.type) for key, end in ends.items() if end is not None}
    between = f"from {each.low} to {each.high}"
    if each.type != STRING:
        if bounds:
            yield "expect_column_values_to_be_between", bounds, f"{nulls}, {between}"
    elif each.values:
        number = _number(len(each.values), "value")
        value_set = {"value_set": list(each.values)}
        yield "expect_column_values_to_be_in_set", value_set, f"{nulls}, {number} in all"
    elif bounds:
        yield "expect_column_value_lengths_to_be_between", bounds, f"{nulls}, length {between}"


def _number(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _bound(end: str, type_: DataType) -> int | str:
    is_whole = not is_time(type_) and end.removeprefix("-").isdecimal()
    return int(end) if is_whole else end


def _name(column: str) -> str:
    return f'"{column}"'
