"""Suites of gold tables: what is read from them, and where their mistakes are reported."""

from __future__ import annotations

import pytest

from headgate.declaration.reading.checked import ProblemReport
from headgate.declaration.suites.model import Suite
from headgate.declaration.suites.reading import VersionSubject, read_suite
from headgate.declaration.type_parser import parse_type
from tests.unit.declaration.test_suites import FILE, SCOPE

SILVER = "id: a, expect: expect_column_sum_to_equal_silver"
MAX = "id: a, expect: expect_column_max_to_be_between"
BETWEEN = "id: a, expect: expect_column_values_to_be_between"
IN_SET = "id: a, expect: expect_column_values_to_be_in_set"
DISTINCT = "id: a, expect: expect_column_distinct_values_to_be_in_set"
GOLD = {
    "sales": parse_type("decimal(20,2)"),
    "window_end": parse_type("timestamp"),
    "n": None,
    "x": parse_type("double"),
    "day": parse_type("date"),
    "site": parse_type("string"),
    "final": parse_type("boolean"),
    "parts": parse_type("array<string>"),
}


def read_table(text: str, pairs: int | None = 1) -> tuple[Suite, list[str]]:
    report = ProblemReport(FILE)
    suite = read_suite("gold", text, VersionSubject(GOLD, SCOPE, {"sales", "x"}, pairs), report)
    return suite, [str(problem) for problem in report.problems]


def test_rules_of_a_gold_table() -> None:
    suite, problems = read_table("""
every: 1 minute
on: final
expectations:
  - {id: rows, expect: expect_table_row_count_to_be_between, min_value: 1}
  - id: fresh
    expect: expect_column_max_to_be_between
    column: window_end
    min_value: now - 10 minutes
    action: warn
  - {id: positive, expect: sales > 0}
  - {id: keys, expect: expect_column_values_to_be_unique, column: window_end, mostly: 0.9}
""")
    assert problems == []
    assert (suite.every.total_seconds(), suite.on_final) == (60, True)
    assert [(rule.id, rule.action) for rule in suite.rules] == [
        ("rows", "hold"),
        ("fresh", "warn"),
        ("positive", "hold"),
        ("keys", "hold"),
    ]
    assert suite.rules[1].arguments == {"column": "window_end", "min_value": "now - 10 minutes"}
    assert suite.rules[2].condition == "coalesce((sales > 0), true)"
    assert suite.rules[3].arguments["mostly"] == 0.9


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("id: a, expect: expect_table_row_count_to_be_between", "needs min_value or max_value"),
        ("id: a, expect: sales > 0, action: quarantine", "must be one of hold, warn"),
        ("id: a, expect: sales > 0, row_condition: sales > 1", "row_condition: unknown key"),
        (
            "id: a, expect: expect_column_values_to_be_unique, column: sales, mostly: 2",
            "must be a share of the rows between 0 and 1",
        ),
        (
            "id: a, expect: expect_column_max_to_be_between, column: window_end, "
            "min_value: now - 3 fortnights",
            "is not a unit of time",
        ),
        (
            "id: a, expect: expect_column_sum_to_be_between, column: sales, min_value: x",
            "must be a number, not 'x'",
        ),
        (f"{MAX}, column: sales, max_value: soon", "'soon' is not a decimal(20,2)"),
        (f"{MAX}, column: sales, max_value: now - 1 hour", "'now - 1 hour' is a time"),
        (f"{MAX}, column: window_end, max_value: soon", "'soon' is not a timestamp"),
        (f"{MAX}, column: day, max_value: 2026-03-01T00:00:00", "is not a date; write it like"),
        (f"{MAX}, column: site, max_value: 3", "the column 'site' is a string"),
        (f"{MAX}, column: x, max_value: 1e999", "is too large a number"),
        (f"{MAX}, column: sales, max_value: 0.{'1' * 21}", "too many digits"),
        (f"{BETWEEN}, column: site, min_value: a, max_value: b", "the column 'site' is a string"),
        (f"{BETWEEN}, column: window_end, min_value: noon", "'noon' is not a timestamp"),
        (f"{IN_SET}, column: x, value_set: [a]", "'a' is not a double"),
        (f"{IN_SET}, column: final, value_set: ['no']", "'no' is not a boolean"),
        (f"{IN_SET}, column: parts, value_set: [a]", "is for columns of one value each"),
        (f"{DISTINCT}, column: window_end, value_set: [noon]", "'noon' is not a timestamp"),
        *(
            (f"id: a, expect: {name}, column: {column}, {more}", f"is for numbers; the column {of}")
            for name, more in (
                ("expect_column_sum_to_be_between", "min_value: 1"),
                ("expect_column_mean_to_be_between", "max_value: 1"),
                ("expect_column_median_to_be_between", "max_value: 1"),
                ("expect_column_stdev_to_be_between", "max_value: 1"),
                (
                    "expect_column_value_z_scores_to_be_less_than",
                    "threshold: 3, double_sided: true",
                ),
            )
            for column, of in (
                ("site", "'site' is a string"),
                ("window_end", "'window_end' is a timestamp"),
                ("day", "'day' is a date"),
            )
        ),
        (
            "id: a, expect: expect_column_mean_to_be_between, column: x, min_value: 5, "
            "max_value: 0",
            "min_value is greater than max_value",
        ),
        (
            "id: a, expect: expect_table_row_count_to_be_between, min_value: 5, max_value: 0",
            "min_value is greater than max_value",
        ),
        (f"{MAX}, column: window_end, min_value: now - 9999999 days", "is before the year 1"),
        (f"{SILVER}, column: sales", "the key 'silver' is missing"),
        (f"{SILVER}, column: sales, silver: prize", "column 'prize' (did you mean \"price\"?)"),
        (f"{SILVER}, column: sales, silver: name", "must be a number, not a string"),
        (f"{SILVER}, column: window_end, silver: n", "the values of 'window_end' do not add up"),
        (f"{SILVER}, column: x, silver: n", "needs a tolerance"),
        (f"{SILVER}, column: sales, silver: n / 2", "needs a tolerance"),
        (f"{SILVER}, column: sales, silver: n, tolerance: -1", "must be 0 or more"),
    ],
)
def test_a_mistake_in_a_rule_of_a_gold_table(rule: str, problem: str) -> None:
    _, problems = read_table(f"expectations:\n  - {{{rule}}}")
    assert len(problems) == 1, problems
    assert problem in problems[0]


def test_rules_over_numbers_count_what_is_true() -> None:
    names = ("sum", "mean", "median", "stdev")
    rules = [f"expect_column_{name}_to_be_between, column: final, min_value: 0" for name in names]
    rules += ["expect_column_sum_to_be_between, column: n, min_value: 0"]  # its type is not known
    text = "".join(f"\n- {{id: r{i}, expect: {rule}}}" for i, rule in enumerate(rules))
    suite, problems = read_table(f"expectations:{text}")
    assert problems == []
    assert len(suite.rules) == 4


def test_what_yaml_has_broken_is_not_reported_again() -> None:
    rules = "expectations:\n- {id: a, expect: sales > 0}\n"
    _, problems = read_table(f"every: 1 minute: x\non: final: y\n{rules}")
    assert [problem.partition(": ")[0] for problem in problems] == [f"{FILE}:1", f"{FILE}:2"]
    assert all("is not YAML" in problem for problem in problems)
    _, problems = read_table(f"every: [1 minute]\non: [final]\n{rules}")
    assert len(problems) == 2


def test_a_rule_of_rows_compares_a_version_as_it_would_compare_silver() -> None:
    suite, problems = read_table(f"""
expectations:
  - {{{IN_SET}, column: x, value_set: [0.5, 1e1]}}
  - {{{BETWEEN.replace("a,", "b,", 1)}, column: sales, max_value: 1e3}}
  - id: c
    expect: expect_multicolumn_values_to_be_equal
    column_list: [x, sales]
    ignore_row_if: any_value_is_missing
    mostly: 0.5
""")
    assert problems == []
    assert [rule.condition for rule in suite.rules] == [
        "(x in (0.5, 1e1))",
        "(sales <= 1000)",
        "(case when ((x is null) or (sales is null)) then null "
        "else coalesce(((x <=> sales)), true) end)",
    ]


def test_a_sum_against_silver() -> None:
    text = f"expectations:\n  - {{{SILVER}, column: sales, silver: price * n}}"
    suite, problems = read_table(text)
    assert problems == []
    assert suite.rules[0].arguments == {"column": "sales", "silver": "price * n"}
    _, problems = read_table(text, pairs=None)
    assert "needs each silver row to be in the same number of windows" in problems[0]
