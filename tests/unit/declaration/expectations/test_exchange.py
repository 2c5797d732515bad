"""Suites are exported to the JSON of Great Expectations and imported from it, also foreign ones."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.declaration.expectations.exporting import as_parameter, exported
from headgate.declaration.expectations.importing import (
    Imported,
    NotASuiteError,
    imported,
    stored_time,
)
from headgate.declaration.expectations.written import suite_text
from headgate.declaration.suites.model import ROW_ACTIONS, SEVERITIES
from tests.support.suites import ARGUMENTS, TYPES, suite_of, suite_yaml

_SQL = st.sampled_from(
    [
        "i > 0",
        "s rlike 'a{2}'",
        "s = 'it\\'s' or s like '{batch}%'",
        "to_date(s) is not null",
        "size(split(s, ',')) > 1",
        "s != 'ü\n日本 \U0001f600 \"'",
    ]
)
_ROWS = st.sampled_from(["", "b", "i > 0", "to_date(s) > date '2026-01-01'", "s = 'a: b # c'"])


@st.composite
def _asked(draw: st.DrawFn) -> dict[str, Any]:
    if draw(st.booleans()):
        return {"expect": draw(_SQL)}
    name = draw(st.sampled_from(sorted(ARGUMENTS)))
    return {"expect": name, **_canonical(draw(ARGUMENTS[name]))}


def _canonical(value: Any) -> Any:
    """Numbers as both formats write them: 1, not 1.0."""
    if isinstance(value, dict):
        return {key: _canonical(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_canonical(each) for each in value]
    if isinstance(value, Decimal | float):
        return int(value) if value == int(value) else float(value)
    return value


@st.composite
def _rules(draw: st.DrawFn) -> list[dict[str, Any]]:
    rules = []
    for number in range(draw(st.integers(1, 6))):
        action = draw(st.sampled_from(ROW_ACTIONS))
        rule = {"id": f"r{number}", **draw(_asked()), "action": action}
        rule["severity"] = draw(st.sampled_from(SEVERITIES))
        if action == "stop":
            rule["above"] = f"{draw(st.integers(0, 9999)) / 100:g} %"
        rule |= {"row_condition": rows} if (rows := draw(_ROWS)) else {}
        rules.append(rule)
    return rules


def back(document: dict[str, Any]) -> Imported:
    return imported(json.dumps(document), "suite.json")


@pytest.mark.slow
@settings(max_examples=30)
@given(rules=_rules())
def test_a_suite_that_is_exported_and_imported_is_the_same(rules: list[dict[str, Any]]) -> None:
    suite = suite_of(suite_yaml(rules))
    found = back(exported(suite, TYPES))
    assert found.unsupported == ()
    assert suite_of(suite_text(found.rules)) == suite


@pytest.mark.parametrize("ago", ["0 s", "90 s", "2592000 s", "1234567 s", "1500 ms", "1 ms"])
def test_a_time_before_the_validation_keeps_every_digit(ago: str) -> None:
    assert stored_time(as_parameter(f"now - {ago}")) == f"now - {ago}"


def kept(item: dict[str, Any]) -> dict[str, Any]:
    """The rule that an expectation becomes."""
    found = back({"name": "theirs", "expectations": [item]})
    assert found.unsupported == ()
    return dict(found.rules[0].keys)


def refused(item: dict[str, Any]) -> str:
    found = back({"name": "theirs", "expectations": [item]})
    assert found.rules == ()
    return found.unsupported[0].reason


def expectation(name: str, **kwargs: Any) -> dict[str, Any]:
    return {"type": name, "kwargs": kwargs, "severity": "warning"}


NOT_NULL = "expect_column_values_to_not_be_null"
IN_SET = "expect_column_values_to_be_in_set"
BETWEEN = "expect_column_values_to_be_between"
SQL = "unexpected_rows_expectation"


def test_an_expectation_of_theirs_gets_an_id_and_the_default_action() -> None:
    """Arguments that say how a run reports are left out."""
    item = expectation(
        BETWEEN, column="Price", min_value=1.0, max_value=2.5, mostly=1.0, catch_exceptions=False
    )
    assert kept(item) == {
        "id": "price_between",
        "expect": BETWEEN,
        "column": "Price",
        "min_value": 1,
        "max_value": "2.5",
        "severity": "warning",
        "action": "warn",
    }
    assert kept({"expectation_type": NOT_NULL, "kwargs": {"column": "x"}})["id"] == "x_not_null"


@pytest.mark.parametrize(
    ("of_gold", "severity", "keys"),
    [
        (False, "critical", {}),
        (False, None, {}),
        (False, "warning", {"severity": "warning", "action": "warn"}),
        (False, "info", {"severity": "info", "action": "warn"}),
        (True, "critical", {}),
        (True, "warning", {"severity": "warning", "action": "warn"}),
        (True, "info", {"severity": "info", "action": "warn"}),
    ],
)
def test_only_a_critical_expectation_removes_rows_or_holds_a_version(
    of_gold: bool, severity: str | None, keys: dict[str, str]
) -> None:
    """In their suites, a severity is all that says what a failure does."""
    item = {"type": NOT_NULL, "kwargs": {"column": "x"}, "severity": severity}
    (rule,) = imported(json.dumps({"expectations": [item]}), "x.json", of_gold=of_gold).rules
    assert rule.keys == {"id": "x_not_null", "expect": NOT_NULL, "column": "x", **keys}


def test_an_action_of_ours_counts_whatever_the_severity_is() -> None:
    ours = {"meta": {"headgate": {"id": "a", "action": "quarantine"}}}
    rule = kept({**expectation(NOT_NULL, column="x"), **ours})
    assert (rule["severity"], "action" in rule) == ("warning", False)


def test_values_keep_their_type_and_their_digits() -> None:
    found = back(
        {
            "expectations": [
                expectation(IN_SET, column="s", value_set=["01067", "1.50", "true", "7"])
            ]
        }
    )
    suite = suite_of(suite_text(found.rules))
    assert suite.rules[0].condition == "coalesce((s in ('01067', '1.50', 'true', '7')), true)"
    (kwargs,) = (each["kwargs"] for each in exported(suite, TYPES)["expectations"])
    assert kwargs["value_set"] == ["01067", "1.50", "true", "7"]
    text = suite_text(
        back({"expectations": [expectation(IN_SET, column="b", value_set=[True])]}).rules
    )
    assert exported(suite_of(text), TYPES)["expectations"][0]["kwargs"]["value_set"] == [True]


@pytest.mark.parametrize(
    ("item", "id_"),
    [
        (expectation("expect_column_values_to_be_in_set", column="a", value_set=[1]), "a_in_set"),
        (
            expectation("expect_multicolumn_sum_to_equal", column_list=["a", "b"], sum_total=1),
            "a_b_sum_equal",
        ),
        (
            expectation("expect_column_pair_values_to_be_equal", column_A="a", column_B="b"),
            "a_b_pair_equal",
        ),
        (
            expectation(SQL, unexpected_rows_query="SELECT * FROM {batch} WHERE a"),
            "unexpected_rows",
        ),
    ],
)
def test_ids_say_what_is_asked_of_which_column(item: dict[str, Any], id_: str) -> None:
    assert kept(item)["id"].startswith(id_)


def test_ids_are_unique_and_short() -> None:
    items = [expectation(NOT_NULL, column=name) for name in ("a", "a", "A" * 90, "A" * 90, "日")]
    ids = [rule.keys["id"] for rule in back({"name": "x", "expectations": items}).rules]
    assert ids[:2] == ["a_not_null", "a_not_null_2"]
    assert len(set(ids)) == len(ids)
    assert suite_text(back({"expectations": items}).rules)
    assert max(map(len, ids)) <= 63


@pytest.mark.parametrize(
    ("condition", "sql"),
    [
        ({"type": "pass_through", "pass_through_filter": "a > 1"}, "a > 1"),
        ({"type": "nullity", "column": {"name": "a"}, "is_null": False}, "a is not null"),
        (
            {
                "type": "and",
                "conditions": [
                    {
                        "type": "comparison",
                        "column": {"name": "a"},
                        "operator": "==",
                        "parameter": 1,
                    },
                    {
                        "type": "comparison",
                        "column": {"name": "b"},
                        "operator": "NOT_IN",
                        "parameter": ["it's", "c"],
                    },
                ],
            },
            r"(a = 1) and (b not in ('it\'s', 'c'))",
        ),
    ],
)
def test_row_conditions_become_sql(condition: dict[str, Any], sql: str) -> None:
    assert kept(expectation(NOT_NULL, column="x", row_condition=condition))["row_condition"] == sql


def test_a_query_for_rows_becomes_a_condition() -> None:
    query = "select *\nfrom {batch} where s rlike 'a{{2}}' or i is null;"
    assert kept(expectation(SQL, unexpected_rows_query=query))["expect"] == (
        "not (s rlike 'a{2}' or i is null)"
    )


def test_what_was_changed_after_the_export_counts() -> None:
    suite = suite_of(suite_yaml([{"id": "a", "expect": "i > 0", "row_condition": "b"}]))
    document = exported(suite, TYPES)
    (item,) = document["expectations"]
    item["kwargs"]["unexpected_rows_query"] = "SELECT * FROM {batch} WHERE i > 5"
    assert kept(item) == {"id": "a", "expect": "not (i > 5)"}


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (expectation("expect_column_values_to_be_unique", column="a"), "is not supported for rows"),
        (expectation("expect_column_values_to_be_dateutil_parseable"), "is not supported for rows"),
        (expectation(NOT_NULL, column="a", mostly=0.95), "action: stop and above: 20 %"),
        (expectation(NOT_NULL, column="a", mostly={"$PARAMETER": "m"}), "mostly is not for rows"),
        (expectation(NOT_NULL), "the key 'column' is missing"),
        (
            expectation(BETWEEN, column="a", min_value=1, parse_strings_as_datetimes=True),
            "its argument parse_strings_as_datetimes is not supported",
        ),
        (
            expectation(BETWEEN, column="a", min_value={"$PARAMETER": "low"}),
            "its argument min_value must be a value",
        ),
        (
            expectation(NOT_NULL, column="a", row_condition="a.isna()", condition_parser="pandas"),
            "condition_parser pandas",
        ),
        (
            expectation(
                NOT_NULL,
                column="a",
                row_condition={"type": "pass_through", "pass_through_filter": "city != 'x'"},
                condition_parser="pandas",
            ),
            "condition_parser pandas",
        ),
        (
            expectation(NOT_NULL, column="a", row_condition={"type": "new"}),
            "its row_condition has a form that is not known",
        ),
        (
            expectation(NOT_NULL, column="a", row_condition="a >", condition_parser="spark"),
            "row_condition does not parse",
        ),
        (
            expectation(SQL, unexpected_rows_query="SELECT max(a) FROM {batch} GROUP BY b"),
            "its query is not of the form SELECT * FROM {batch} WHERE",
        ),
        (
            expectation(SQL, unexpected_rows_query="SELECT * FROM {batch} WHERE a > 1 LIMIT 5"),
            "expect does not parse",
        ),
        (
            expectation("expect_column_values_to_match_regex", column="a", regex=["b"]),
            "regex must be a regular expression",
        ),
    ],
)
def test_what_rules_of_rows_cannot_ask_is_refused_with_its_reason(
    item: dict[str, Any], reason: str
) -> None:
    assert reason in refused(item)


@pytest.mark.parametrize("text", ["", "[]", '{"name": "a"}', '{"expectations": [1]}', "[" * 9999])
def test_what_is_no_suite(text: str) -> None:
    with pytest.raises(NotASuiteError, match=r"suite\.json is not"):
        imported(text, "suite.json")
