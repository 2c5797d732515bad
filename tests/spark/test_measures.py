"""Measures of chosen rows, in one batch and in many that are merged in any order."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate.declaration.expressions.measure import parse_measure
from headgate.declaration.model import Measure
from headgate.declaration.type_parser import parse_type
from headgate.flow.gold.measures import percentile
from tests.oracle import measures as oracle
from tests.oracle.rules import Measure as Rule
from tests.oracle.rules import Row
from tests.support.states import joined, states, values

pytestmark = pytest.mark.spark

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
CHOICES: dict[str, tuple[str, list[Any]]] = {
    "t": ("string", ["a", "b", "", "Ω", None]),
    "x": ("double", [1.5, -0.0, 0.0, math.nan, math.inf, -math.inf, None]),
    "d": ("decimal(12,2)", [Decimal("1.50"), Decimal("-7.25"), Decimal("0.00"), None]),
    "b": ("boolean", [True, False, None]),
    "at": ("timestamp", [NOON, NOON + timedelta(microseconds=1), None]),
    "n": ("int", [1, 2, 3, None]),
}
"""The columns, their types and some values of each."""
POSITION = {
    "_event_time": "timestamp",
    "_partition": "int",
    "_offset": "bigint",
    "_item": "int",
}
TYPES = {name: type_ for name, (type_, _) in CHOICES.items()} | POSITION


INEXACT = ("stddev", "stddev_pop", "variance", "var_pop", "percentile")


def some_rows(chance: random.Random, count: int) -> Iterator[Row]:
    """Rows of one group, with ties in all but their positions."""
    for offset in range(count):
        yield {
            **{name: chance.choice(some) for name, (_, some) in CHOICES.items()},
            "_event_time": NOON + timedelta(seconds=chance.randrange(2)),
            "_partition": chance.randrange(2),
            "_offset": offset // 3,
            "_item": offset % 3,
        }


def in_batches(
    spark: SparkSession, groups: list[list[Row]], measures: list[Measure], cuts: int
) -> DataFrame:
    """The values of each group, by each of some ways to cut its rows into batches. The states of
    the batches are merged in two parts, and then those of the parts."""
    chance = random.Random(3)
    names = ("cut", "of", "part", "batch")
    rows = [
        (cut, number, *(chance.randrange(most) if cut else 0 for most in (2, 4)), *row.values())
        for cut in range(cuts)
        for number, group in enumerate(groups)
        for row in group
    ]
    columns = {**dict.fromkeys(names, "int"), **TYPES}
    frame = spark.createDataFrame(rows, ", ".join(f"{n} {type_}" for n, type_ in columns.items()))
    parts = joined(states(frame, measures, *names), measures, *names[:3])
    return values(joined(parts, measures, *names[:2]), measures, *names[:2])


def declared(calls: Iterable[str]) -> list[Measure]:
    scope = {name: parse_type(type_) for name, type_ in TYPES.items()}
    return [parse_measure(f"m{n}", call, scope) for n, call in enumerate(calls)]


def of(name: str) -> Any:
    return lambda row: row[name]


def shown(value: Any) -> Any:
    """A value of a list, in which NaN equals itself and -0.0 is not 0.0."""
    return value.replace(tzinfo=None) if isinstance(value, datetime) else repr(value)


def is_chosen(row: Row) -> Any:
    return True if row["n"] is not None and row["n"] > 1 else row["b"]


BY = {
    f"{function}({value}, {order}){suffix}": Rule(
        function, of(value), TYPES[value], of(order), of("b") if suffix else None
    )
    for function in ("min_by", "max_by")
    for value, order in (("t", "x"), ("x", "t"), ("d", "d"), ("at", "b"), ("n", "at"), ("b", "n"))
    for suffix in ("", " filter (where b)")
}
FILTERED = {
    f"{call} filter (where n > 1 or b)": Rule(function, of(argument), type_, None, is_chosen)
    for call, function, argument, type_ in (
        ("count(t)", "count", "t", "bigint"),
        ("count(distinct t)", "count_distinct", "t", "bigint"),
        ("approx_count_distinct(t)", "approx_count_distinct", "t", "bigint"),
        ("sum(d)", "sum", "d", "decimal(22,2)"),
        ("sum(n)", "sum", "n", "bigint"),
        ("avg(d)", "avg", "d", "decimal(16,6)"),
        ("stddev(n)", "stddev", "n", "double"),
        ("stddev_pop(d)", "stddev_pop", "d", "double"),
        ("variance(n)", "variance", "n", "double"),
        ("var_pop(n)", "var_pop", "n", "double"),
        ("every(b)", "bool_and", "b", "boolean"),
        ("any(b)", "bool_or", "b", "boolean"),
        ("min(t)", "min", "t", "string"),
        ("max(at)", "max", "at", "timestamp"),
        ("first(t)", "first", "t", "string"),
        ("last(d)", "last", "d", "decimal(12,2)"),
        ("count_if(b)", "count_if", "b", "bigint"),
        ("median(d)", "percentile", "d", "double"),
    )
}


LISTS = {
    f"top_n({value}, {order}, {most}){suffix}": Rule(
        "top_n",
        of(value),
        f"array<{TYPES[value]}>",
        of(order),
        of("b") if suffix else None,
        most=most,
    )
    for value, order in (("t", "x"), ("x", "t"), ("d", "d"), ("at", "b"), ("n", "at"), ("b", "n"))
    for most, suffix in ((1, ""), (2, " filter (where b)"), (3, ""), (100, ""))
}
LISTS |= {
    f"collect_list({value}, {most}){suffix}": Rule(
        "collect_list",
        of(value),
        f"array<{TYPES[value]}>",
        None,
        of("b") if suffix else None,
        most=most,
    )
    for value in ("t", "x", "d", "b", "at", "n")
    for most, suffix in ((1, ""), (2, " filter (where b)"), (3, ""), (100, ""))
}

PERCENTILES = {
    f"percentile({argument}, {share})": Rule("percentile", of(argument), "double", share=share)
    for argument in "xn"
    for share in (0, 0.25, 0.5, 0.95, 1)
}


def test_values_computed_by_hand(spark: SparkSession) -> None:
    some = [("a", 2.0, 1, True), ("b", None, 2, True), (None, 1.0, 3, None), ("c", 2.0, 4, False)]
    rows = [
        {**dict.fromkeys(TYPES), "t": t, "x": x, "n": n, "b": b, **place}
        for offset, (t, x, n, b) in enumerate(some)
        for place in ({"_event_time": NOON, "_partition": 0, "_offset": 0, "_item": offset},)
    ]
    wanted = {
        "count(*) filter (where b)": 2,
        "count(*) filter (where t > 'c')": 0,
        "sum(n) filter (where b)": 3,
        "sum(n) filter (where t > 'c')": None,
        "count(distinct x) filter (where t is not null)": 1,
        "first(t) filter (where not b)": "c",
        "count_if(b)": 2,
        "count_if(t > 'c')": 0,
        "min_by(t, x)": None,
        "max_by(t, x)": "c",
        "min_by(n, x) filter (where b)": 1,
        "max_by(n, t)": 4,
        "min_by(n, x) filter (where t = 'b')": None,
        "mean(n)": 2.5,
        "variance(n) filter (where n < 4)": 1.0,
        "std(n) filter (where n < 4)": 1.0,
        "var_samp(n) filter (where n = 1)": None,
        "var_pop(n)": 1.25,
        "stddev_pop(n) filter (where n in (1, 3))": 1.0,
        "var_pop(n) filter (where n = 1)": 0.0,
        "bool_and(b)": False,
        "every(b) filter (where n < 4)": True,
        "bool_or(b)": True,
        "some(b) filter (where n = 3)": None,
        "first_value(t)": "a",
        "median(n)": 2.5,
        "percentile(n, 0)": 1.0,
        "percentile(n, 0.1) filter (where b)": 1.1,
        "percentile(n * n, 0.75)": 10.75,
        "median(n >> 1)": 1.0,
        "percentile(x, 1.0)": 2.0,
        "median(x) filter (where t = 'b')": None,
        "top_n(t, x, 1)": ["c"],
        "top_n(t, x, 2)": ["c", "a"],
        "top_n(t, x, 10)": ["c", "a", None],
        "top_n(n, x, 3) filter (where b)": [1],
        "top_n(t, x, 3) filter (where t = 'b')": [],
        "collect_list(t, 2)": ["a", "b"],
        "collect_list(t, 10)": ["a", "b", "c"],
        "collect_list(b, 10) filter (where n > 1)": [True, False],
        "collect_list(b, 10) filter (where n = 3)": [],
    }
    measures = declared(wanted)
    (row,) = in_batches(spark, [rows], measures, 1).select([m.name for m in measures]).collect()
    assert dict(zip(wanted, row, strict=True)) == wanted


def test_values_are_as_the_oracle_says_however_rows_are_cut_into_batches(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # More values are rounded to 7 binary digits, which these values have.
    monkeypatch.setattr(percentile, "_MOST", 3)
    calls = {
        **BY,
        **PERCENTILES,
        **LISTS,
        **FILTERED,
        "count_if(b)": Rule("count_if", of("b"), "bigint"),
        "count(*) filter (where b)": Rule("count", None, "bigint", None, of("b")),
    }
    chance, measures = random.Random(4), declared(calls)
    groups = [
        list(some_rows(chance, size)) for size in (1, 1, 2, 2, 3, 5, 8, 8, 20, 20) for _ in "ab"
    ]
    found = in_batches(spark, groups, measures, 3).collect()
    assert len(found) == 3 * len(groups)
    for row in found:
        for number, (call, rule) in enumerate(calls.items()):
            wanted = oracle.measure(rule, groups[row["of"]])
            value = row[f"m{number}"]
            if isinstance(wanted, list):
                value, wanted = [*map(shown, value)], [*map(shown, wanted)]
            value = value.replace(tzinfo=UTC) if isinstance(value, datetime) else value
            if isinstance(wanted, float) and wanted != 0 and rule.function in INEXACT:
                wanted = pytest.approx(wanted, nan_ok=True)
            elif isinstance(wanted, float):
                value, wanted = str(value), str(wanted)
            assert value == wanted, (call, groups[row["of"]], row["cut"])


def test_many_values_are_rounded_whatever_the_order_of_merges(spark: SparkSession) -> None:
    chance, few = random.Random(5), percentile._MOST
    given = {
        "few": [float(n) + 0.1 for n in range(few)] * 2,
        "many": [float(n) + 0.1 for n in range(few + 1)] * 2,
        "wide": [chance.choice((-1, 1)) * chance.lognormvariate(0, 9) for _ in range(2 * few)],
        "large": [chance.uniform(1e291, 1e308) for _ in range(2 * few)],
    }
    rows = [
        (cut, name, *(chance.randrange(3) * cut for _ in range(2)), each)
        for cut in range(3)
        for name, some in given.items()
        for each in some
    ]
    names = ("cut", "of", "part", "batch")
    frame = spark.createDataFrame(rows, "cut int, of string, part int, batch int, x double")
    shares = (0, 0.1, 0.5, 0.999)
    measures = declared(f"percentile(x, {share})" for share in shares)
    parts = joined(states(frame, measures, *names), measures, *names[:3])
    found = joined(parts, measures, *names[:2]).cache()
    counts = "array_sort(map_entries(s.m0.`values`.counts))"
    kept = found.selectExpr("of", "s.m0.`values`.rounded", f"string({counts})").distinct().collect()
    assert {row["of"]: row["rounded"] for row in kept} == {
        "few": False,
        "many": True,
        "wide": True,
        "large": True,
    }
    assert len(kept) == len(given)  # one state, however the rows are cut
    for _, name, *shown in values(found, measures, *names[:2]).collect():
        for share, value in zip(shares, shown, strict=True):
            exact = oracle.percentile(given[name], share)
            within = 1e-12 if name == "few" else 1 / 128
            assert value == (math.inf if name == "large" else pytest.approx(exact, rel=within))


def test_a_list_keeps_so_many_rows_whatever_the_order_of_merges(spark: SparkSession) -> None:
    """Values with parts are kept, too. A merge keeps no more rows than the partial states."""
    scope = {"p": parse_type("struct<t: string, xs: array<int>>"), "n": parse_type("int")}
    calls = ("top_n(p, n, 3)", "top_n(p.xs, n, 3)", "collect_list(p, 3)", "collect_list(p.t, 4)")
    measures = [parse_measure(f"m{n}", call, scope) for n, call in enumerate(calls)]
    chance = random.Random(6)
    given = [((f"name {n}", [n, None]) if n % 7 else None, chance.randrange(5)) for n in range(90)]
    places = [(NOON + timedelta(seconds=chance.randrange(3)), 0, n // 2, n % 2) for n in range(90)]
    rows = [
        (cut, *(chance.randrange(3) * cut for _ in range(2)), *row, *place)
        for cut in range(3)
        for row, place in zip(given, places, strict=True)
    ]
    types = {"cut": "int", "part": "int", "batch": "int", "p": scope["p"], "n": "int", **POSITION}
    frame = spark.createDataFrame(rows, ", ".join(f"{n} {type_}" for n, type_ in types.items()))
    partial = states(frame, measures, "cut", "part", "batch")
    whole = joined(joined(partial, measures, "cut", "part"), measures, "cut")
    for found in (partial, whole):
        sizes = found.selectExpr(*(f"max(size(s.m{n}.`rows`)) m{n}" for n in range(4))).first()
        assert sizes is not None
        assert tuple(sizes) == (3, 3, 3, 4)
    assert whole.selectExpr("to_json(s)").distinct().count() == 1
    row = values(whole, measures, "cut").first()
    assert row is not None
    by_order = sorted(zip(given, places, strict=True), key=lambda one: (one[0][1], one[1]))
    top = [value for (value, _), _ in reversed(by_order[-3:])]
    early = sorted(zip(places, given, strict=True), key=lambda one: one[0])
    known = [value for _, (value, _) in early if value is not None]
    assert row["m0"] == top
    assert row["m1"] == [value and value[1] for value in top]
    assert row["m2"] == known[:3]
    assert row["m3"] == [value[0] for value in known[:4]]
