"""Measures as folds: a batch becomes a partial state, two states merge, a state has a value.

``merge`` is commutative and associative and a missing state is its neutral element, so a window's
value depends neither on the order of its rows nor on how they were cut into batches. Expressions
are Spark SQL; ``{old}`` and ``{new}`` stand for a state's fields.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headgate.declaration.model import Function, Measure

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
_INTEGERS = frozenset({"tinyint", "smallint", "int", "integer", "bigint", "long"})


@dataclass(frozen=True)
class Field:
    """One field of a measure's state: its type, the aggregate that makes it from rows, and how
    two of them become one (None: ``combine`` of the whole state does it)."""

    type: str
    partial: str
    merge: str


@dataclass(frozen=True)
class Fold:
    """The state's fields by name, and the value over them (fields written as ``{name}``)."""

    fields: Mapping[str, Field]
    value: str


def fold(measure: Measure) -> Fold:
    """How ``measure`` is folded."""
    return _FOLDS[measure.function](measure)


_ADD = "case when {old} is null then {new} when {new} is null then {old} else {old} + {new} end"


def _cast(expression: str, type_: str) -> str:
    return f"cast({expression} as {type_})"


def _added(type_: str, partial: str) -> Field:
    return Field(type_, _cast(partial, type_), _cast(_ADD, type_))


def _sum_type(argument_type: str) -> str:
    """Exact for integers and decimals; one digit is left free so that Spark's addition keeps the
    scale."""
    if argument_type in _INTEGERS:
        return "decimal(37,0)"
    if match := _DECIMAL.fullmatch(argument_type):
        precision, scale = int(match[1]), int(match[2])
        return f"decimal({min(37, precision + 18)},{scale})"
    return "double"


def _summed(measure: Measure) -> Field:
    type_ = _sum_type(measure.argument_type or "")
    exact = (
        f"cast(({measure.argument}) as {type_})" if type_ != "double" else f"({measure.argument})"
    )
    return _added(type_, f"sum({exact})")


def _counted(measure: Measure) -> Field:
    return _added(
        "bigint", "count(*)" if measure.argument is None else f"count({measure.argument})"
    )


def _count(measure: Measure) -> Fold:
    return Fold({"n": _counted(measure)}, "{n}")


def _sum(measure: Measure) -> Fold:
    return Fold({"sum": _summed(measure)}, _cast("{sum}", measure.type))


def _avg(measure: Measure) -> Fold:
    total = _summed(measure)
    if match := _DECIMAL.fullmatch(measure.argument_type or ""):
        # Narrowed first: Spark would give a full-width sum only six digits after the point.
        narrow = f"decimal({min(38, int(match[1]) + 10)},{match[2]})"
        value = f"cast({{sum}} as {narrow}) / cast({{n}} as decimal(19,0))"
    else:
        value = "cast({sum} as double) / {n}"
    return Fold(
        {"n": _counted(measure), "sum": total},
        f"case when {{n}} > 0 then {_cast(value, measure.type)} end",
    )


def _extreme(function: str, merge: str) -> Callable[[Measure], Fold]:
    def folded(measure: Measure) -> Fold:
        field = Field(measure.type, f"{function}({measure.argument})", f"{merge}({{old}}, {{new}})")
        return Fold({"value": field}, "{value}")

    return folded


def _edge(function: str, merge: str) -> Callable[[Measure], Fold]:
    """First or last by event time; ties are broken by the position in the log."""

    def folded(measure: Measure) -> Fold:
        type_ = f"struct<at: timestamp, partition: int, offset: bigint, value: {measure.type}>"
        argument = f"({measure.argument})"
        row = (
            "named_struct('at', _event_time, 'partition', _partition, 'offset', _offset, "
            f"'value', {argument})"
        )
        partial = f"{function}({row}) filter (where {argument} is not null)"
        return Fold({"row": Field(type_, partial, f"{merge}({{old}}, {{new}})")}, "{row}.value")

    return folded


def _distinct(measure: Measure) -> Fold:
    type_ = f"array<{measure.argument_type}>"
    merge = (
        "case when {old} is null then {new} when {new} is null then {old} "
        "else array_union({old}, {new}) end"
    )
    return Fold(
        {"set": Field(type_, f"collect_set({measure.argument})", merge)},
        "cast(coalesce(size({set}), 0) as bigint)",
    )


def _approximate(measure: Measure) -> Fold:
    """A HyperLogLog sketch with 2^12 registers: standard error 1.6 %.

    Estimated from a union, always: a sketch that never was in one estimates by its insertion
    order, and the value would depend on how rows were cut into batches.
    """
    argument = measure.argument
    if measure.argument_type not in {*_INTEGERS, "string", "binary"}:
        argument = f"cast({argument} as string)"
    merge = (
        "case when {old} is null then {new} when {new} is null then {old} "
        "else hll_union({old}, {new}) end"
    )
    return Fold(
        {"sketch": Field("binary", f"hll_sketch_agg({argument})", merge)},
        "coalesce(hll_sketch_estimate(hll_union({sketch}, {sketch})), 0)",
    )


def _stddev(measure: Measure) -> Fold:
    """Sample standard deviation by count, mean and sum of squared differences.

    Merged as in Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for
    Computing Sample Variances" (1979); never as sums of squares, which cancel.
    """
    value = f"cast(({measure.argument}) as double)"
    joint = "{old.n} * {new.n} / cast({old.n} + {new.n} as double)"
    mean = "{old.mean} + ({new.mean} - {old.mean}) * {new.n} / ({old.n} + {new.n})"
    squares = (
        f"{{old.squares}} + {{new.squares}} + ({{new.mean}} - {{old.mean}}) "
        f"* ({{new.mean}} - {{old.mean}}) * ({joint})"
    )
    return Fold(
        {
            "n": _counted(measure),
            "mean": Field("double", f"avg({value})", _unless_empty("mean", mean)),
            "squares": Field(
                "double", f"var_pop({value}) * count({value})", _unless_empty("squares", squares)
            ),
        },
        "case when {n} > 1 then sqrt({squares} / ({n} - 1)) end",
    )


def _unless_empty(field: str, both: str) -> str:
    return (
        f"case when coalesce({{old.n}}, 0) = 0 then {{new.{field}}} "
        f"when coalesce({{new.n}}, 0) = 0 then {{old.{field}}} else {both} end"
    )


_FOLDS: Mapping[Function, Callable[[Measure], Fold]] = {
    "count": _count,
    "sum": _sum,
    "avg": _avg,
    "min": _extreme("min", "least"),
    "max": _extreme("max", "greatest"),
    "first": _edge("min", "least"),
    "last": _edge("max", "greatest"),
    "stddev": _stddev,
    "count_distinct": _distinct,
    "approx_count_distinct": _approximate,
}

_PLACE = re.compile(r"\{(old|new)(?:\.(\w+))?\}")


def merged(measure: Measure, name: str, old: str, new: str) -> str:
    """The SQL that merges field ``name`` of two states addressed by ``old`` and ``new``."""

    def place(match: re.Match[str]) -> str:
        side = old if match[1] == "old" else new
        return f"{side}.`{match[2] or name}`"

    return _PLACE.sub(place, fold(measure).fields[name].merge)


def value(measure: Measure, state: str) -> str:
    """The SQL of the measure's value over the state addressed by ``state``."""
    sql = re.sub(r"\{(\w+)\}", lambda m: f"{state}.`{m[1]}`", fold(measure).value)
    return _cast(sql, measure.type)


def state_type(measure: Measure) -> str:
    fields = ", ".join(f"`{n}`: {f.type}" for n, f in fold(measure).fields.items())
    return f"struct<{fields}>"
