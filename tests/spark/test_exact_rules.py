"""Rules of gold tables compare values in their own types, not as texts and not as doubles."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate.declaration.expectations.result import RuleResult
from headgate.declaration.expectations.validation import validate
from headgate.declaration.reading.checked import ProblemReport
from headgate.declaration.suites.model import Rule
from headgate.declaration.suites.reading import VersionSubject, read_suite
from headgate.declaration.type_parser import parse_type
from headgate.flow.gates.broken_rows import broken_rows
from tests.support.suites import suite_of

pytestmark = pytest.mark.spark

NOW = datetime(2026, 3, 3, tzinfo=UTC)
NAN = float("nan")
TYPES = {
    "x": "double",
    "y": "double",
    "d": "decimal(28,10)",
    "g": "bigint",
    "t": "string",
    "b": "boolean",
    "at": "timestamp",
    "day": "date",
}
SMALL, NEXT = Decimal("100000000000000000"), Decimal("100000000000000000.0000000001")
ROWS: list[tuple[Any, ...]] = [
    (0.5, NAN, SMALL, 2**53, "1", True, datetime(2026, 3, 1, tzinfo=UTC), date(2026, 3, 1)),
    (0.25, 1.0, NEXT, 2**53 + 1, "2", False, datetime(2026, 3, 2, tzinfo=UTC), date(2026, 3, 2)),
    (None, None, None, None, None, None, None, None),
    (0.0, 2.0, Decimal("0.1"), 1, "1", True, datetime(2026, 3, 1, tzinfo=UTC), date(2026, 3, 1)),
    (-0.0, 3.0, Decimal("0.2"), 2, "3", True, datetime(2026, 3, 1, tzinfo=UTC), date(2026, 3, 1)),
]
# Expectations, by the name after expect_column_, with their arguments; all of them are met.
MET: list[tuple[str, str]] = [
    ("values_to_be_in_set", "column: x, value_set: [0.5, 0.25, 0]"),
    ("values_to_be_in_set", "column: t, value_set: [1, 2, 3]"),
    ("values_to_be_in_set", "column: b, value_set: [true, false]"),
    ("values_to_be_in_set", "column: b, value_set: [true], mostly: 0.75"),
    ("values_to_be_in_set", "column: day, value_set: ['2026-03-01', '2026-03-02']"),
    ("values_to_not_be_in_set", "column: d, value_set: [0.10000000001, 100000000000000001]"),
    ("values_to_not_be_in_set", "column: g, value_set: [9007199254740994]"),
    ("distinct_values_to_be_in_set", "column: x, value_set: [0.5, 0.25, 0, 7]"),
    ("distinct_values_to_equal_set", "column: x, value_set: [0.5, 0.25, 0.0]"),
    ("distinct_values_to_equal_set", "column: t, value_set: [1, 2, 3]"),
    ("distinct_values_to_equal_set", "column: b, value_set: [true, false]"),
    (
        "distinct_values_to_equal_set",
        "column: at, value_set: ['2026-03-01', '2026-03-02T00:00:00Z']",
    ),
    ("distinct_values_to_contain_set", "column: d, value_set: [0.1, 1e17]"),
    ("most_common_value_to_be_in_set", "column: x, value_set: [0.0]"),
    ("most_common_value_to_be_in_set", "column: day, value_set: ['2026-03-01']"),
    ("most_common_value_to_be_in_set", "column: g, value_set: [1], ties_okay: true"),
    (
        "pair_values_to_be_in_set",
        "column_A: t, column_B: x, value_pairs_set: [['1', 0.5], ['2', 0.25], ['1', 0], ['3', 0]]",
    ),
    ("values_to_be_between", "column: at, min_value: '2026-03-01T00:00:00Z'"),
    ("values_to_be_between", "column: at, min_value: '2026-03-01'"),
    ("max_to_be_between", "column: at, max_value: '2026-03-02T00:00:00Z', min_value: now - 2 days"),
    ("max_to_be_between", "column: at, max_value: '2026-03-02T01:00:00+01:00'"),
    ("min_to_be_between", "column: at, min_value: '2026-03-01'"),
    ("min_to_be_between", "column: day, min_value: '2026-03-01', max_value: now - 2 days"),
    ("values_to_be_unique", "column: g"),
    ("values_to_be_unique", "column: d"),
    ("values_to_be_unique", "column: y"),
    ("unique_value_count_to_be_between", "column: d, min_value: 4, max_value: 4"),
    ("unique_value_count_to_be_between", "column: x, min_value: 3, max_value: 3"),
    ("proportion_of_non_null_values_to_be_between", "column: y, min_value: 0.8, max_value: 0.8"),
    ("proportion_of_unique_values_to_be_between", "column: x, min_value: 0.75, max_value: 0.75"),
    ("max_to_be_between", "column: g, max_value: 9007199254740993"),
    ("max_to_be_between", "column: d, max_value: 100000000000000000.0000000001"),
    ("sum_to_be_between", "column: x, min_value: 0.75, max_value: 0.75"),
    ("median_to_be_between", "column: g, min_value: 4503599627370497, max_value: 4503599627370497"),
    ("mean_to_be_between", "column: b, min_value: 0.75, max_value: 0.75"),
    ("min_to_be_between", "column: x, min_value: 0"),
    ("pair_values_a_to_be_greater_than_b", "column_A: g, column_B: x"),
    ("value_z_scores_to_be_less_than", "column: g, threshold: 5, double_sided: true"),
]
BROKEN: list[tuple[str, str]] = [
    ("values_to_not_be_in_set", "column: x, value_set: [0.5]"),
    ("values_to_not_be_in_set", "column: d, value_set: [0.1]"),
    ("values_to_not_be_in_set", "column: t, value_set: [1]"),
    ("values_to_not_be_in_set", "column: day, value_set: ['2026-03-01']"),
    ("values_to_not_be_in_set", "column: at, value_set: ['2026-03-01T00:00:00Z']"),
    ("values_to_be_in_set", "column: g, value_set: [1, 2, 9007199254740992]"),
    ("values_to_be_in_set", "column: b, value_set: [true], mostly: 0.76"),
    ("distinct_values_to_be_in_set", "column: y, value_set: [1, 2, 3]"),
    ("distinct_values_to_equal_set", "column: x, value_set: [0.5, 0.25, 0, 7]"),
    ("distinct_values_to_contain_set", "column: x, value_set: [0.75]"),
    ("most_common_value_to_be_in_set", "column: g, value_set: [1]"),
    ("values_to_be_between", "column: y, max_value: 5"),
    ("values_to_be_between", "column: y, min_value: 0"),
    ("values_to_be_between", "column: d, max_value: 1e17"),
    ("max_to_be_between", "column: g, max_value: 9007199254740992"),
    ("max_to_be_between", "column: d, max_value: 100000000000000000"),
    ("max_to_be_between", "column: y, max_value: 5"),
    ("max_to_be_between", "column: y, min_value: 0"),
    ("min_to_be_between", "column: y, min_value: 0"),
    ("sum_to_be_between", "column: y, min_value: 0"),
    ("mean_to_be_between", "column: y, max_value: 5"),
    ("median_to_be_between", "column: y, max_value: 5"),
    ("stdev_to_be_between", "column: y, max_value: 5"),
    ("value_z_scores_to_be_less_than", "column: y, threshold: 5, double_sided: true"),
    ("median_to_be_between", "column: g, max_value: 4503599627370496.9"),
    ("max_to_be_between", "column: at, max_value: '2026-03-02', strict_max: true"),
    ("values_to_be_unique", "column: x"),
]


def frame_of(spark: SparkSession, rows: Iterable[tuple[Any, ...]]) -> DataFrame:
    ddl = ", ".join(f"{name} {type_}" for name, type_ in TYPES.items())
    return spark.createDataFrame(list(rows), ddl)


def rules_of(asked: Iterable[tuple[str, str]]) -> tuple[Rule, ...]:
    text = "expectations:\n" + "".join(
        f"  - {{id: r{number}, expect: expect_column_{name}, {given}}}\n"
        for number, (name, given) in enumerate(asked)
    )
    report = ProblemReport(Path("expectations/gold.yml"))
    types = {name: parse_type(type_) for name, type_ in TYPES.items()}
    suite = read_suite("gold", text, VersionSubject(types, {}, (), 1), report)
    assert report.problems == []
    return suite.rules


def wrong(
    asked: list[tuple[str, str]], found: Iterable[RuleResult], *, met: bool
) -> list[tuple[str, str, str]]:
    """The expectations whose result is not ``met``, and why."""
    pairs = zip(asked, found, strict=True)
    return [(name, given, str(r)) for (name, given), r in pairs if r.met is not met]


@pytest.mark.parametrize(("asked", "met"), [(MET, True), (BROKEN, False)], ids=["met", "broken"])
def test_values_are_compared_as_their_type(
    spark: SparkSession, asked: list[tuple[str, str]], met: bool
) -> None:
    found = validate(frame_of(spark, ROWS), rules_of(asked), NOW)
    assert wrong(asked, found, met=met) == []


OF_ROWS = [
    ("value_z_scores_to_be_less_than", "column: g, threshold: 1, double_sided: true"),
    ("value_z_scores_to_be_less_than", "column: g, threshold: 1, double_sided: false"),
    ("values_to_be_unique", "column: t"),
    ("values_to_be_unique", "column: at, mostly: 0.9"),
    ("values_to_be_unique", "column: day"),
    ("pair_values_to_be_equal", "column_A: x, column_B: y, ignore_row_if: neither"),
]


def test_the_rows_that_break_a_rule_are_those_that_it_counts(spark: SparkSession) -> None:
    """A release covers rows only then."""
    asked, frame = [*BROKEN, *OF_ROWS], frame_of(spark, ROWS)
    rules = rules_of(asked)
    text = "\n".join(
        f"- {{id: c{number}, expect: expect_compound_columns_to_be_unique, column_list: [t, b, x]"
        f", ignore_row_if: {ignored}}}"
        for number, ignored in enumerate(
            ("all_values_are_missing", "any_value_is_missing", "never")
        )
    )
    types = {name: parse_type(type_) for name, type_ in TYPES.items()}
    subject = VersionSubject(types, {}, (), 1)
    rules += read_suite(
        "gold", f"expectations:\n{text}", subject, ProblemReport(Path("gold.yml"))
    ).rules
    counted = {
        r.rule: r.unexpected for r in validate(frame, rules, NOW) if r.unexpected is not None
    }
    found = broken_rows(frame, frame.limit(0), rules, ["g"])
    assert {rule: len(found.digests.get(rule, ())) for rule in counted} == counted
    assert sum(map(bool, counted.values())) > 10
    assert len({row.digest for row in found.rows}) == len(found.rows)


@pytest.mark.parametrize(
    ("name", "given", "rows"),
    [
        ("max", "column: g, max_value: 9007199254740991", 2),
        ("max", "column: at, max_value: 2026-03-02, strict_max: true", 1),
        ("max", "column: day, max_value: 2026-03-01", 1),
        ("min", "column: d, min_value: 0.15", 1),
        ("max", "column: at, min_value: 2027-01-01", 0),
        ("max", "column: at, max_value: now - 10 minutes", 0),
    ],
)
def test_the_rows_beyond_a_bound_are_shown(
    spark: SparkSession, name: str, given: str, rows: int
) -> None:
    frame = frame_of(spark, ROWS)
    (rule,) = rules_of([(f"{name}_to_be_between", given)])
    assert len(broken_rows(frame, frame.limit(0), [rule], ["g"]).rows) == rows


def test_a_row_is_the_same_until_a_value_changes(spark: SparkSession) -> None:
    """Its status may change, and the last digits of a sum of doubles."""

    def digest(key: str | None, total: float, count: int | None, *, final: bool) -> str:
        row = (key, total, count, final, int(final), datetime(2026, 3, 1 + final, tzinfo=UTC))
        ddl = "k string, x double, n int, final boolean, revision int, updated_at timestamp"
        frame = spark.createDataFrame([row], ddl)
        (rule,) = rules_of([("values_to_be_between", "column: x, max_value: 0")])
        (found,) = broken_rows(frame, frame, [rule], ["k"]).rows
        assert found.row.change == "seen"
        return found.digest

    one = digest(None, 0.3, None, final=False)
    assert digest(None, 0.1 + 0.2, None, final=True) == one
    for other in ((None, 0.3001, None), (None, 0.3, 0), ("", 0.3, None)):
        assert digest(*other, final=False) != one


def test_sums_of_decimals_are_exact(spark: SparkSession) -> None:
    rows = [(None, None, Decimal(text), *[None] * 5) for text in ("0.1", "0.2")]
    asked = [
        ("sum_to_be_between", "column: d, min_value: 0.3, max_value: 0.3"),
        ("mean_to_be_between", "column: d, min_value: 0.15, max_value: 0.15"),
        ("stdev_to_be_between", "column: d, min_value: 0.07071, max_value: 0.070711"),
    ]
    found = validate(frame_of(spark, rows), rules_of(asked), NOW)
    assert wrong(asked, found, met=True) == []
    assert [result.observed for result in found[:2]] == ["0.3", "0.15"]


@pytest.mark.parametrize(
    ("total", "met"), [("1.0000000001", True), ("1", False), ("1.000000", False)]
)
def test_sums_of_whole_numbers_and_decimals_in_a_row_are_exact(
    spark: SparkSession, total: str, met: bool
) -> None:
    types = {name: parse_type(text) for name, text in (("n", "int"), ("p", "decimal(18,10)"))}
    suite = suite_of(
        "expectations: [{id: a, expect: expect_multicolumn_sum_to_equal, column_list: [n, p], "
        f"sum_total: {total}}}]",
        types,
    )
    rows = spark.sql("select 1 as n, cast(0.0000000001 as decimal(18,10)) as p")
    ((found,),) = rows.selectExpr(suite.rules[0].condition).collect()
    assert found is met


def test_values_that_have_several_forms_are_equal(spark: SparkSession) -> None:
    """The NaN that a processor computes for 0 / 0 has other bits than Java's NaN."""
    other = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_0000))[0]
    rows = [(x, *[None] * 7) for x in (NAN, other, 0.0, -0.0)]
    met = [("unique_value_count_to_be_between", "column: x, min_value: 2, max_value: 2")]
    asked = [("values_to_be_unique", "column: x, mostly: 0.01")]
    found = validate(frame_of(spark, rows), rules_of(met + asked), NOW)
    assert wrong(met, found[:1], met=True) == []
    assert wrong(asked, found[1:], met=False) == []


def test_a_table_without_values(spark: SparkSession) -> None:
    asked = [
        ("max_to_be_between", "column: g, max_value: 5"),
        ("mean_to_be_between", "column: x, max_value: 5"),
        ("median_to_be_between", "column: d, max_value: 5"),
        ("stdev_to_be_between", "column: d, max_value: 5"),
        ("most_common_value_to_be_in_set", "column: t, value_set: [a]"),
    ]
    met = [
        ("sum_to_be_between", "column: d, max_value: 0"),
        ("distinct_values_to_be_in_set", "column: t, value_set: [a]"),
        ("values_to_be_between", "column: x, max_value: 0"),
        ("values_to_be_unique", "column: at"),
    ]
    for rows in ([], [(None,) * len(TYPES)]):
        found = validate(frame_of(spark, rows), rules_of(asked + met), NOW)
        assert wrong(asked, found[: len(asked)], met=False) == []
        assert wrong(met, found[len(asked) :], met=True) == []


def test_a_rule_that_great_expectations_refuses_is_not_met(spark: SparkSession) -> None:
    """All other rules are validated."""
    good, odd = rules_of(
        [("values_to_be_unique", "column: g"), ("values_to_be_unique", "column: d")]
    )
    refused = Rule("odd", odd.expectation, {"column": "d", "mostly": "soon"}, action="hold")
    found = validate(frame_of(spark, ROWS), [refused, good], NOW)
    assert [(result.rule, result.met) for result in found] == [("odd", False), ("r0", True)]
    assert found[0].error
