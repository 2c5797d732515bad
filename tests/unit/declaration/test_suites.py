"""Suites of rows: what is read from them, and where their mistakes are reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlglot.dialects.spark import Spark

from headgate.declaration.errors import DeclarationError
from headgate.declaration.expressions.expression import parse_condition
from headgate.declaration.load import load
from headgate.declaration.model import SilverTable
from headgate.declaration.plan import describe, plan
from headgate.declaration.reading.checked import ProblemReport
from headgate.declaration.suites.model import MOST_RULES, Suite
from headgate.declaration.suites.reading import RowSubject, VersionSubject, read_suite
from headgate.declaration.type_parser import parse_type
from headgate.declaration.types import BOOLEAN, STRING

DECLARATION = """
pipeline: shop
sources:
  orders:
    files: {path: landing, format: json}
    record:
      event_id: [id]
      event_time: {column: at}
      schema: {id: string, at: timestamp, price: "decimal(8,2)", n: int}
silver:
  clean:
    from: orders
    columns: {total: price * n}
    drop: [n]
    expectations: orders_are_sound
"""
SCOPE = {
    "price": parse_type("decimal(8,2)"),
    "name": parse_type("string"),
    "n": parse_type("int"),
    "m": parse_type("int"),
    "at": parse_type("timestamp"),
    "ok": parse_type("boolean"),
    "day": parse_type("date"),
    "broken": None,
}
FILE = Path("expectations/rows.yml")
IN_SET = "id: a, expect: expect_column_values_to_be_in_set"
MATCHES = "id: a, expect: expect_column_values_to_match_regex, column: name"


def read(*rules: str) -> tuple[Suite, list[str]]:
    report = ProblemReport(FILE)
    text = "expectations:\n" + "".join(f"  - {{{rule}}}\n" for rule in rules)
    suite = read_suite("rows", text, RowSubject(SCOPE), report)
    return suite, [str(problem) for problem in report.problems]


@pytest.mark.parametrize(
    ("rule", "condition"),
    [
        ("column: price, min_value: 0, strict_min: true", "price > 0"),
        ("column: n, min_value: -1, max_value: 5, strict_max: true", "n >= -1 and n < 5"),
        ("column: price, max_value: 1e3", "price <= 1000"),
        ("column: at, min_value: 2026-01-01", "at >= timestamp '2026-01-01'"),
    ],
)
def test_a_range(rule: str, condition: str) -> None:
    suite, problems = read(f"id: a, expect: expect_column_values_to_be_between, {rule}")
    assert problems == []
    assert suite.rules[0].condition == f"coalesce(({condition}), true)"


def test_texts_keep_quotes_and_backslashes() -> None:
    of = "id: a, expect: expect_column_values_to_be_in_set, column: name"
    suite, problems = read(of + r", value_set: [it's, 'a\b']")
    assert problems == []
    assert suite.rules[0].condition == r"coalesce((name in ('it\'s', 'a\\b')), true)"


@pytest.mark.parametrize(
    ("rule", "condition"),
    [
        # Compared with texts, a value is the text that is written.
        (
            f"{IN_SET}, column: name, value_set: [01067, 1.50, '1.50', 1e3, 0x10, 1_000, +7, 007]",
            "name in ('01067', '1.50', '1.50', '1e3', '0x10', '1_000', '+7', '007')",
        ),
        (
            f"{IN_SET}, column: name, value_set: [true, True, no, 'null', 2026-01-31, .5]",
            "name in ('true', 'True', 'no', 'null', '2026-01-31', '.5')",
        ),
        (f"{MATCHES}, regex: 01067", "(name rlike '01067')"),
        (f"{MATCHES}, regex: ^0+$", "(name rlike '^0+$')"),
        (
            "id: a, expect: expect_column_values_to_match_regex_list, column: name, "
            "regex_list: [007, true]",
            "(name rlike '007') or (name rlike 'true')",
        ),
        # Compared with others, it is a value of their type, quoted or not.
        (f"{IN_SET}, column: price, value_set: [1.50, '2.50', 3]", "price in (1.50, 2.50, 3)"),
        (f"{IN_SET}, column: n, value_set: [01067, '5', -007, +3]", "n in (01067, 5, -007, +3)"),
        (f"{IN_SET}, column: ok, value_set: [True, 'false']", "ok in (true, false)"),
        (
            f"{IN_SET}, column: day, value_set: [2026-01-31, '2026-02-01']",
            "day in (date '2026-01-31', date '2026-02-01')",
        ),
        (
            "id: a, expect: expect_column_pair_values_to_be_in_set, column_A: name, column_B: n, "
            "ignore_row_if: neither, value_pairs_set: [[01, 01]]",
            "(((name <=> '01') and (n <=> 01)))",
        ),
    ],
)
def test_a_value_is_as_written_and_its_column_says_what_it_is(rule: str, condition: str) -> None:
    suite, problems = read(rule)
    assert problems == []
    assert suite.rules[0].condition == f"coalesce(({condition}), true)"


def test_a_condition_of_rows_leaves_the_others_out() -> None:
    suite, problems = read("id: a, expect: price > 0, row_condition: ok")
    assert problems == []
    assert suite.rules[0].condition == "coalesce(not coalesce((ok), false) or (price > 0), true)"
    assert (suite.rules[0].sql, suite.rules[0].row_condition) == ("price > 0", "ok")


def test_what_a_rule_does() -> None:
    suite, problems = read(
        "id: a, expect: n > 0",
        "id: b, expect: n > 1, action: warn, severity: info",
        "id: c, expect: n > 2, action: stop, above: 12.5 %",
    )
    assert problems == []
    assert [(r.severity, r.action, r.above, r.quarantines) for r in suite.rules] == [
        ("critical", "quarantine", None, True),
        ("info", "warn", None, False),
        ("critical", "stop", 0.125, True),
    ]
    assert Suite.decode(suite.encode()) == suite


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        ("expect: n > 0", "expectations[0]: the key 'id' is missing"),
        ("id: a", "expectations[0]: the key 'expect' is missing"),
        ("id: A b, expect: n > 0", "expectations[0].id: 'A b' is not an id"),
        ("id: a, expect: m1 > 0", "unknown column 'm1' (did you mean \"m\"?)"),
        ("id: a, expect: n + 1", "must be a condition, not an int"),
        ("id: a, expect: n > 0, colum: n", "expectations[0].colum: unknown key"),
        ("id: a, expect: n > 0, mostly: 0.9", "action: stop and above: 20 %"),
        ("id: a, expect: n > 0, severity: fatal", "must be one of critical, warning, info"),
        ("id: a, expect: n > 0, action: hold", "must be one of quarantine, warn, stop"),
        ("id: a, expect: n > 0, action: stop", "the key 'above' is missing"),
        ("id: a, expect: n > 0, above: 20 %", "is for the action stop alone"),
        ("id: a, expect: n > 0, action: stop, above: 0.2", 'did you mean "20 %"?'),
        ("id: a, expect: n > 0, row_condition: n", "row_condition: must be a condition"),
        (
            "id: a, expect: expect_column_values_to_be_nul, column: n",
            'did you mean "expect_column_values_to_be_null"?',
        ),
        (
            "id: a, expect: expect_column_values_to_be_null, column: nn",
            "expectations[0].column: there is no column 'nn' (did you mean \"n\"?)",
        ),
        (
            "id: a, expect: expect_column_values_to_be_between, column: n, min_value: x",
            "'x' is not an int",
        ),
        (
            "id: a, expect: expect_column_values_to_be_between, column: n, min_value: 2, "
            "max_value: 1",
            "min_value is greater than max_value",
        ),
        (f"{IN_SET}, column: name, value_set: [a, null]", "must be a value, not null; quote it if"),
        (f"{IN_SET}, column: ok, value_set: [yes]", "'yes' is not a boolean"),
        (f"{IN_SET}, column: n, value_set: [1_000]", "'1_000' is not an int"),
        (f"{IN_SET}, column: price, value_set: [0x10]", "'0x10' is not a decimal(8,2)"),
        (f"{IN_SET}, column: day, value_set: [20260131]", "'20260131' is not a date"),
        (f"{MATCHES}, regex: [0-9]+$", "is not YAML"),
        (f"{MATCHES}, regex: [0-9]", "must be a regular expression, not a list"),
        ("id: a, expect: expect_column_values_to_be_between, column: n", "needs min_value or"),
        (
            "id: a, expect: expect_column_values_to_be_between, column: name, min_value: a",
            "is for numbers and times; the column 'name' is a string",
        ),
        (
            "id: a, expect: expect_column_values_to_match_regex, column: name, regex: '(a'",
            "is not a regular expression",
        ),
        (
            "id: a, expect: expect_column_values_to_be_in_set, column: n, value_set: 3",
            "must be a list of values",
        ),
        (
            "id: a, expect: expect_multicolumn_values_to_be_equal, column_list: [n]",
            "must be two different columns or more",
        ),
        (
            "id: a, expect: expect_column_pair_values_to_be_in_set, column_A: n, column_B: m, "
            "value_pairs_set: [[1]]",
            "must be a list of pairs",
        ),
        (
            "id: a, expect: expect_multicolumn_sum_to_equal, column_list: [n, m], sum_total: 1e400",
            "sum_total: 1e400 is too large a number",
        ),
        (
            "id: a, expect: expect_column_value_lengths_to_equal, column: name, value: -1",
            "must be a whole number from 0 on",
        ),
    ],
)
def test_a_mistake_says_where_and_what(rule: str, problem: str) -> None:
    _, problems = read(rule)
    assert len(problems) == 1, problems
    assert problem in problems[0]
    assert problems[0].startswith(f"{FILE}:2: ")


def test_a_column_whose_own_declaration_is_wrong_is_not_reported_again() -> None:
    suite, problems = read(
        "id: a, expect: broken > 0",
        "id: b, expect: expect_column_values_to_be_null, column: broken",
    )
    assert (suite.rules, problems) == ((), [])


def test_any_name_may_be_that_of_a_column() -> None:
    """Words that sqlglot reads otherwise are written in backquotes; other columns stay as they are,
    on which the digest of a suite depends."""
    words = sorted(word.lower() for word in Spark.Tokenizer.KEYWORDS if word.isalpha())
    assert len(words) > 200
    for word in [*words, "while", "partitioned_by"]:
        report, columns = ProblemReport(FILE), {word: STRING, "other": STRING}
        text = f"""
expectations:
  - {{id: a, expect: expect_column_values_to_not_be_null, column: '{word}'}}
  - {{id: b, expect: expect_column_values_to_be_in_set, column: '{word}', value_set: [x]}}
  - {{id: c, expect: expect_column_value_lengths_to_equal, column: '{word}', value: 2}}
  - {{id: d, expect: expect_column_pair_values_to_be_equal, column_A: '{word}', column_B: other}}
"""
        suite = read_suite("rows", text, RowSubject(columns), report)
        assert report.problems == [], word
        versions = read_suite("rows", text, VersionSubject(columns, columns, (), 1), report)
        assert report.problems == [], word
        for rule in (*suite.rules, *versions.rules):
            assert parse_condition(rule.condition, columns).type == BOOLEAN
    suite, _ = read("id: a, expect: expect_column_values_to_not_be_null, column: name")
    assert suite.rules[0].condition == "coalesce((name is not null), true)"


@pytest.mark.parametrize("word", ["comment", "all", "load"])
def test_a_word_that_is_read_as_a_column_is_not_in_backquotes(word: str) -> None:
    report = ProblemReport(FILE)
    rule = f"id: a, expect: expect_column_values_to_not_match_regex, column: {word}, regex: x"
    text = f"expectations: [{{{rule}}}]"
    suite = read_suite("rows", text, RowSubject({word: STRING}), report)
    assert suite.rules[0].condition == f"coalesce((not ({word} rlike 'x')), true)"


def test_all_mistakes_are_reported_at_once() -> None:
    _, problems = read("id: a, expect: x > 0", "id: a, expect: n > 0", "id: a, expect: n > 1")
    assert len(problems) == 2
    assert problems[1] == f"{FILE}:4: expectations[2].id: two rules have the id 'a'"


def test_a_suite_has_at_most_as_many_rules_as_silver_has_bits() -> None:
    _, problems = read(*(f"id: r{i}, expect: n > {i}" for i in range(MOST_RULES + 1)))
    assert problems == [f"{FILE}:1: expectations: has 63 rules; a suite has at most 62"]


@pytest.mark.parametrize("text", ["", "a", "rules: []", "expectations: []", "expectations: {a: b}"])
def test_a_file_that_is_no_suite(text: str) -> None:
    report = ProblemReport(FILE)
    read_suite("rows", text, RowSubject(SCOPE), report)
    assert report.problems


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The declaration of a project with a folder of suites."""
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "expectations").mkdir()
    file = tmp_path / "pipelines" / "shop.yml"
    file.write_text(DECLARATION)
    return file


def suite_file(project: Path) -> Path:
    return project.parent.parent / "expectations" / "orders_are_sound.yml"


def test_a_table_names_its_suite(project: Path) -> None:
    """Its rules see the columns of silver, and those that Headgate adds."""
    suite_file(project).write_text(
        "expectations:\n- {id: a, expect: total > 0}\n- {id: b, expect: _offset >= 0, action: warn}"
    )
    table = load(project).silver["clean"]
    assert table.suite is not None
    assert [rule.id for rule in table.suite.rules] == ["a", "b"]
    planned = plan(load(project))["silver"]["clean"]
    assert planned["suite"]["rejected"] == "rejected/clean"
    assert planned["schema"]["_warnings"] == "array<string>"
    assert "rule     b (critical, warn): coalesce((_offset >= 0), true)" in describe(load(project))


def test_a_suite_beside_the_declaration_comes_first(project: Path) -> None:
    """An installed example uses its own suite, whatever folder it is installed below."""
    suite_file(project).write_text("expectations: [{id: a, expect: total > 0}]")
    beside = project.parent / "expectations" / suite_file(project).name
    beside.parent.mkdir()
    beside.write_text("expectations: [{id: b, expect: total > 0}]")
    suite = load(project).silver["clean"].suite
    assert suite is not None
    assert [rule.id for rule in suite.rules] == ["b"]


def test_a_mistake_in_a_suite_names_the_suites_file(project: Path) -> None:
    suite_file(project).write_text("expectations:\n- {id: a, expect: n > 0}")
    with pytest.raises(DeclarationError) as error:
        load(project)
    assert str(error.value).startswith(f"{suite_file(project)}:2: expectations[0].expect: unknown")


def test_a_suite_that_is_not_there(project: Path) -> None:
    suite_file(project).with_stem("orders_are_sont").write_text("")
    with pytest.raises(DeclarationError, match="there is no suite .*orders_are_sound.yml") as error:
        load(project)
    assert 'did you mean "orders_are_sont"?' in str(error.value)
    assert f"{project}:15: silver.clean.expectations:" in str(error.value)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"expectations:\n- {id: a, expect: total > 0}\n# \xff", "3: is not UTF-8 text"),
        (b"#" * 2_000_000, "1: is larger than 1 MB: not a suite"),
    ],
)
def test_a_suite_that_cannot_be_read(content: bytes, says: str, project: Path) -> None:
    suite_file(project).write_bytes(content)
    with pytest.raises(DeclarationError) as error:
        load(project)
    assert str(error.value).startswith(f"{suite_file(project)}:{says}")
    assert len(error.value.problems) == 1


def clean(suite: str | None) -> SilverTable:
    text = DECLARATION if suite else DECLARATION.replace("    expectations: orders_are_sound\n", "")
    suites = {"orders_are_sound": suite or ""}
    return load("shop.yml", text=text, suites=suites).silver["clean"]


def test_rules_are_not_part_of_what_a_table_is_but_having_some_is() -> None:
    """Other rules apply from the next batch; a first suite adds a column and a table."""
    one, other = (
        "expectations: [{id: a, expect: total > 0}]",
        "expectations: [{id: b, expect: total > 1}]",
    )

    def digests(suite: str | None) -> tuple[str, ...]:
        text = DECLARATION if suite else DECLARATION.replace("expectations:", "where: price > 0 #")
        pipeline = load("shop.yml", text=text, suites={"orders_are_sound": suite or ""})
        return pipeline.digest, pipeline.definitions["silver/clean"]

    assert digests(one) == digests(other)
    assert digests(one) != digests(None)
    assert clean(one).suite != clean(other).suite
    assert clean(one).suite_digest != clean(other).suite_digest
    assert clean(None).suite_digest == ""


def test_a_rule_about_tables_is_not_for_rows() -> None:
    _, problems = read("id: a, expect: expect_table_row_count_to_be_between, min_value: 1")
    assert "not supported for rows; it is for the suites of gold tables" in problems[0]
