"""Types are found without Spark, and are compared here with those of Spark's own analysis."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise, product

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headgate.declaration.contracts.measure import MEASURES
from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.expression import parse_expression
from headgate.declaration.expressions.measure import parse_measure
from headgate.declaration.expressions.tokens import commas, tokenize
from headgate.declaration.names import SILVER_COLUMNS
from headgate.declaration.type_parser import parse_type
from headgate.declaration.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INTEGRALS,
    TIMESTAMP,
    Array,
    DataType,
    Decimal,
    is_floating,
)
from headgate.flow.gold.schema import fold_of, merged_sql, state_type
from tests.unit.declaration.nested_examples import EXAMPLES, SCOPE

pytestmark = pytest.mark.spark

NUMBERS: dict[str, DataType] = dict(zip("abcdef", (*INTEGRALS, FLOAT, DOUBLE), strict=True))
DECIMALS = ((1, 0), (2, 2), (10, 0), (18, 2), (19, 6), (20, 20), (38, 0), (38, 10), (38, 38))
NUMBERS |= {f"p{p}s{s}": Decimal(p, s) for p, s in DECIMALS}
EXACT = {name for name, type_ in NUMBERS.items() if not is_floating(type_)}
FORMS = (
    *(f"{{0}} {operator} {{1}}" for operator in ("+", "-", "*", "/", "%")),
    "coalesce({0}, {1})",
    "case when {0} is null then {1} else {0} end",
    "pmod({0}, {1})",
    "round({0}, 1)",
    "bround({0}, -3)",
    "ceil({0} / 3)",
    "floor({0} / 3)",
    "abs(-{0})",
    "greatest({0}, {1}, 2.5)",
    "nullif({0}, {1})",
    "if({0} > {1}, {0}, null)",
    "mod({0}, {1})",
    "round({0})",
    "{0} + 1.25",
    "{0} * 7",
    "100 - {0}",
)


def _types(
    spark: SparkSession, columns: Mapping[str, DataType], texts: Iterable[str]
) -> dict[str, str]:
    ddl = ", ".join(f"`{name}` {type_}" for name, type_ in columns.items())
    named = {f"_{index}": text for index, text in enumerate(texts)}
    rows = spark.createDataFrame([], ddl).select(*(F.expr(t).alias(n) for n, t in named.items()))
    return {named[name]: type_ for name, type_ in rows.dtypes}


def _in_spark(
    spark: SparkSession, columns: Mapping[str, DataType], texts: Iterable[str]
) -> dict[str, str]:
    return {text: _as_ours(type_) for text, type_ in _types(spark, columns, texts).items()}


def _as_ours(type_: str) -> str:
    """A type that Spark prints, as we print it."""
    return str(parse_type(type_)) if "<" in type_ else type_


def test_every_example_has_the_type_that_spark_finds(spark: SparkSession) -> None:
    texts = {parse_expression(text, SCOPE).text: type_ for text, type_ in EXAMPLES.items()}
    assert _in_spark(spark, SCOPE, texts) == texts


def test_numbers_of_any_types_combine_as_in_spark(spark: SparkSession) -> None:
    pairs = set(product(NUMBERS, NUMBERS))
    texts = {form.format(*pair) for form, pair in product(FORMS, pairs)}
    texts |= {f"{left} div {right}" for left, right in product(EXACT, EXACT)}
    inferred = {text: str(parse_expression(text, NUMBERS).type) for text in texts}
    found = _in_spark(spark, NUMBERS, texts)
    assert {t: (found[t], inferred[t]) for t in texts if found[t] != inferred[t]} == {}


def accepted(texts: Iterable[str], columns: Mapping[str, DataType]) -> set[str]:
    """Those of ``texts`` that a declaration may hold."""
    found = set()
    for text in texts:
        with suppress(Invalid):
            parse_expression(text, columns)
            found.add(text)
    return found


def with_null(text: str) -> Iterator[str]:
    """``text`` with null instead of one argument of a call."""
    tokens = tokenize(text)
    for index, (before, token) in enumerate(pairwise(tokens), 1):
        if token.text == "(" and before.kind == "word":
            between, end = commas(tokens, index)
            for start, stop in pairwise([index, *between, end]):
                yield f"{text[: tokens[start].end]} null {text[tokens[stop].start :]}"


def test_calls_with_null_are_refused_or_run(spark: SparkSession) -> None:
    texts = accepted({one for text in EXAMPLES for one in with_null(text)}, SCOPE)
    hardened = {parse_expression(text, SCOPE).text for text in texts}
    assert len(hardened) > 200
    assert set(_in_spark(spark, SCOPE, hardened)) == hardened


def test_array_position_takes_the_numbers_that_it_takes_in_spark(spark: SparkSession) -> None:
    columns: dict[str, DataType] = {f"array_{name}": Array(one) for name, one in NUMBERS.items()}
    columns |= NUMBERS
    texts = {f"array_position(array_{left}, {right})" for left, right in product(NUMBERS, NUMBERS)}
    ours = accepted(texts, columns)
    assert set(_in_spark(spark, columns, ours)) == ours
    for text in texts - ours:
        with pytest.raises(AnalysisException):
            _in_spark(spark, columns, [text])


def test_in_compares_as_equal_does(spark: SparkSession) -> None:
    columns = {"d": DATE, "ts": TIMESTAMP, "noon": TIMESTAMP}
    literals = ("'2026-01-31'", "'2026-01-31T12:00:00Z'", "'2026-01-31 12:00:00'")
    times = ("date '2026-01-31'", "timestamp '2026-01-31'", "timestamp '2026-01-31T12:00:00Z'")
    sides = (*columns, *literals, *times)
    texts = {f"{one} in ({two}, {three})" for one, two, three in product(sides, repeat=3)}
    ours = sorted(accepted(texts, columns))
    assert len(ours) > 150
    day = datetime(2026, 1, 31, tzinfo=UTC)
    rows = spark.createDataFrame(
        [(day.date(), day, day.replace(hour=12))], "d date, ts timestamp, noon timestamp"
    )
    pattern = re.compile(r"(.*) in \((.*), (.*)\)")
    wanted = {text: pattern.sub(r"\1 = \2 or \1 = \3", text) for text in ours}
    each = [f"({text}) = ({equal})" for text, equal in wanted.items()]
    (row,) = rows.select(*map(F.expr, each)).collect()
    assert [text for text, same in zip(ours, row, strict=True) if not same] == []


def test_states_of_measures_have_the_types_that_they_declare(spark: SparkSession) -> None:
    columns = {**{f"in_{name}": type_ for name, type_ in SCOPE.items()}, **SILVER_COLUMNS}
    partials: dict[str, DataType] = {}
    merges: dict[str, DataType] = {}
    states: dict[str, DataType] = {}
    for name, column in product(MEASURES.names(), columns):
        given = ", ".join("0.5" if taken == "p" else column for taken in MEASURES[name].takes)
        try:
            measure = parse_measure("m", f"{name}({given})", columns)
        except Invalid:
            continue
        for field, kept in fold_of(measure).fields.items():
            partials[kept.partial] = kept.type
            old, new = f"old_{name}_{column}", f"new_{name}_{column}"
            states |= {old: state_type(measure), new: state_type(measure)}
            merges[merged_sql(measure, field, old, new)] = kept.type
    for known, texts in ((columns, partials), (states, merges)):
        cast = {text: f"cast({text} as {type_})" for text, type_ in texts.items()}
        found, declared = _types(spark, known, cast), _types(spark, known, cast.values())
        assert found == {text: declared[cast[text]] for text in texts}
