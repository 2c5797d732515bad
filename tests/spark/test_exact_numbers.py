"""Sums, averages and counts of numbers of all lengths, in one batch and in many."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal, localcontext

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.contracts.measure import MEASURES
from headgate.declaration.model import Measure, MeasureArgument
from headgate.declaration.type_parser import parse_type
from tests.oracle.measures import measure
from tests.oracle.rules import Measure as Rule
from tests.support.states import joined, states, values

pytestmark = pytest.mark.spark

LENGTHS = ((38, 0), (38, 18), (28, 10), (12, 2))
MOST = (1 << 63) - 1
FRACTIONS: list[list[object]] = [[0.0, -0.0, 1.5], [0.0, -0.0, -1.5], [-0.0], [None]]
FRACTIONS += [[math.nan, math.nan]]
GIVEN: dict[str, list[list[object]]] = {
    "bigint": [[MOST, 1], [MOST, MOST, -MOST], [-MOST, -2], [-MOST, -1], [5, None]],
    "string": [["", "a", None], [""], [None]],
    "double": FRACTIONS,
    "float": FRACTIONS,
}
"""The values of the groups of each type."""
FUNCTIONS = {
    "string": ("approx_count_distinct",),
    **dict.fromkeys(("double", "float"), ("approx_count_distinct", "count_distinct", "max", "min")),
}
"""Those of the types without exact sums."""


def decimals(precision: int, scale: int, chance: random.Random) -> Iterator[list[int]]:
    """Values in units of the last digit."""
    most = 10**precision - 1
    yield [most]
    yield [most, 1, 2]
    yield [most, most, -most, -most, 5]
    yield [10**scale, 2 * 10**scale, 2 * 10**scale]  # a third
    yield [-1, *[0] * 31]  # a tie
    for _ in range(20):
        digits = chance.choice([1, 5, precision // 2, precision])
        size = chance.choice([1, 3, 7, 30])
        yield [chance.randrange(-(10**digits) + 1, 10**digits) for _ in range(size)]


def given() -> Iterator[tuple[str, list[object]]]:
    chance = random.Random(1)
    for type_, found in GIVEN.items():
        yield from ((type_, values) for values in found)
    for precision, scale in LENGTHS:
        with localcontext(prec=100):
            for units in decimals(precision, scale, chance):
                yield f"decimal({precision},{scale})", [Decimal(u).scaleb(-scale) for u in units]


def declared(function: str, type_: str, name: str = "m") -> Measure:
    arguments = (MeasureArgument(f"`{type_}`", parse_type(type_)),)
    return Measure(name, function, arguments, None, MEASURES[function].type_of(arguments))


def prescribed(of: Measure, values: list[object]) -> object:
    place = {"_event_time": datetime(2026, 3, 1, tzinfo=UTC), "_partition": 0, "_item": 0}
    rows = [{"x": each, "_offset": n, **place} for n, each in enumerate(values)]
    return measure(Rule(of.function, lambda row: row["x"], str(of.type)), rows)


def test_values_are_as_the_oracle_says_however_rows_are_cut_into_batches(
    spark: SparkSession,
) -> None:
    groups, chance = list(given()), random.Random(2)
    kinds = list(dict(groups))
    functions = {kind: FUNCTIONS.get(kind, ("sum", "avg")) for kind in kinds}
    pairs = [(function, kind) for kind in kinds for function in functions[kind]]
    measures = [declared(*pair, f"m{number}") for number, pair in enumerate(pairs)]
    types = {"cut": "int", "of": "int", "batch": "int"} | {kind: kind for kind in kinds}
    rows = [
        {"cut": cut, "of": number, "batch": chance.randrange(4) * cut, kind: each}
        for cut in (0, 1)
        for number, (kind, given_) in enumerate(groups)
        for each in given_
    ]
    frame = spark.createDataFrame(
        [tuple(row.get(name) for name in types) for row in rows],
        ", ".join(f"`{name}` {type_}" for name, type_ in types.items()),
    )
    batches = states(frame, measures, "cut", "of", "batch")
    totals = joined(batches, measures, "cut", "of")
    found = values(totals, measures, "cut", "of").collect()
    assert len(found) == 2 * len(groups)
    for row in found:
        kind, given_ = groups[row["of"]]
        for of, pair in zip(measures, pairs, strict=True):
            if pair[1] == kind:
                one, wanted = row[of.name], prescribed(of, given_)
                if kind in FUNCTIONS:  # As texts, -0.0 is not 0.0, and NaN equals NaN.
                    one, wanted = str(one), str(wanted)
                assert one == wanted, (pair, given_, row["cut"])
