"""Values of columns, and arguments of every expectation over them, for Hypothesis."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from hypothesis import strategies as st
from ruamel.yaml import YAML

from headgate.declaration.reading.checked import ProblemReport
from headgate.declaration.suites.model import Suite
from headgate.declaration.suites.reading import RowSubject, read_suite
from headgate.declaration.type_parser import parse_type
from headgate.declaration.types import DataType

SECOND = timedelta(seconds=1)

TYPES: dict[str, DataType] = {
    "i": parse_type("int"),
    "j": parse_type("int"),
    "l": parse_type("bigint"),
    "d": parse_type("double"),
    "p": parse_type("decimal(18,2)"),
    "s": parse_type("string"),
    "t": parse_type("string"),
    "b": parse_type("boolean"),
    "at": parse_type("timestamp"),
    "day": parse_type("date"),
}
_TEXTS = st.sampled_from(
    ["", "a", "A", "ab", "a b", "it's", "a\\d", "17", "-3.5", "ü", "日本", "a\nb"]
)
_WHOLE = st.integers(-3, 6)
_TIMES = st.integers(0, 172_800).map(lambda s: datetime(2026, 1, 1, tzinfo=UTC) + s * SECOND)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "i": _WHOLE,
    "j": _WHOLE,
    "l": st.sampled_from([-(2**63), -1, 0, 1, 2, 2**53, 2**63 - 1]),
    "d": st.sampled_from([0.0, -0.0, 0.5, 1.0, 2.0, -1.5, float("nan"), float("inf")]),
    "p": st.sampled_from([Decimal(text) for text in ("-1.50", "0.00", "0.50", "1.00", "2.00")]),
    "s": _TEXTS,
    "t": _TEXTS,
    "b": st.booleans(),
    "at": _TIMES,
    "day": st.dates(date(2026, 1, 1), date(2026, 1, 3)),
}
ROWS = st.lists(
    st.fixed_dictionaries({name: st.none() | values for name, values in VALUES.items()}),
    min_size=20,
    max_size=60,
)
_ORDERED = ("i", "l", "d", "p", "at", "day")
_REGEXES = st.sampled_from(["a", "^a", "b$", r"\d+", "^$", "[a-z]{2}", "^(?:a|17)$", "."])
_PAIRS = st.lists(st.tuples(_WHOLE, _TEXTS).map(list), min_size=1, max_size=4)
_IGNORE_PAIR = st.sampled_from(["both_values_are_missing", "either_value_is_missing", "neither"])
_IGNORE_MANY = st.sampled_from(["all_values_are_missing", "any_value_is_missing", "never"])


def _finite(name: str) -> st.SearchStrategy[Any]:
    """Values that a declaration can write."""
    return st.sampled_from([0.0, 0.5, 1.0, -1.5]) if name == "d" else VALUES[name]


@st.composite
def _bounds(draw: st.DrawFn) -> dict[str, Any]:
    name = draw(st.sampled_from(_ORDERED))
    ends = sorted(draw(st.lists(_finite(name), min_size=2, max_size=2)))
    given: dict[str, Any] = {"column": name, "min_value": ends[0], "max_value": ends[1]}
    given |= {"strict_min": draw(st.booleans()), "strict_max": draw(st.booleans())}
    left_out = draw(st.sampled_from(["min_value", "max_value", ""]))
    given.pop(left_out, None)
    return given


@st.composite
def _in_set(draw: st.DrawFn) -> dict[str, Any]:
    name = draw(st.sampled_from(["i", "l", "p", "s", "b", "d"]))
    return {"column": name, "value_set": draw(st.lists(_finite(name), min_size=1, max_size=4))}


def _with(given: dict[str, Any], **optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {k: v if isinstance(v, st.SearchStrategy) else st.just(v) for k, v in given.items()},
        optional=optional,
    )


_ANY = {"column": st.sampled_from(list(TYPES))}
_TEXT = {"column": st.sampled_from(["s", "t"])}
_LIST = {"column_list": st.sampled_from([["i", "j"], ["i", "j", "l"], ["i", "l"]])}
_REGEX = {**_TEXT, "regex": _REGEXES}
_REGEX_LIST = {**_TEXT, "regex_list": st.lists(_REGEXES, min_size=1, max_size=3)}
_FLAG = st.booleans()
ARGUMENTS: Mapping[str, st.SearchStrategy[dict[str, Any]]] = {
    "expect_column_values_to_not_be_null": _with(_ANY),
    "expect_column_values_to_be_null": _with(_ANY),
    "expect_column_values_to_be_between": _bounds(),
    "expect_column_values_to_be_in_set": _in_set(),
    "expect_column_values_to_not_be_in_set": _in_set(),
    "expect_column_values_to_match_regex": _with(_REGEX),
    "expect_column_values_to_not_match_regex": _with(_REGEX),
    "expect_column_values_to_match_regex_list": _with(
        _REGEX_LIST, match_on=st.sampled_from(["any", "all"])
    ),
    "expect_column_values_to_not_match_regex_list": _with(_REGEX_LIST),
    "expect_column_value_lengths_to_be_between": _with(
        {**_TEXT, "min_value": st.integers(0, 1)},
        max_value=st.integers(1, 3),
        strict_min=_FLAG,
        strict_max=_FLAG,
    ),
    "expect_column_value_lengths_to_equal": _with({**_TEXT, "value": st.integers(0, 3)}),
    "expect_column_pair_values_a_to_be_greater_than_b": _with(
        {"column_A": "i", "column_B": st.sampled_from(["j", "l", "d", "p"])},
        or_equal=_FLAG,
        ignore_row_if=_IGNORE_PAIR,
    ),
    "expect_column_pair_values_to_be_equal": _with(
        {"column_A": "s", "column_B": "t"}, ignore_row_if=_IGNORE_PAIR
    ),
    "expect_column_pair_values_to_be_in_set": _with(
        {"column_A": "i", "column_B": "s", "value_pairs_set": _PAIRS},
        ignore_row_if=_IGNORE_PAIR,
    ),
    "expect_multicolumn_sum_to_equal": _with(
        {**_LIST, "sum_total": st.integers(-2, 6)}, ignore_row_if=_IGNORE_MANY
    ),
    "expect_multicolumn_values_to_be_equal": _with(_LIST, ignore_row_if=_IGNORE_MANY),
    "expect_select_column_values_to_be_unique_within_record": _with(
        _LIST, ignore_row_if=_IGNORE_MANY
    ),
}

# Great Expectations accepts a row_condition for it, but ignores it.
WITHOUT_CONDITION = "expect_column_pair_values_to_be_in_set"


def written(value: Any) -> Any:
    """A value as YAML represents it."""
    if isinstance(value, dict):
        return {key: written(each) for key, each in value.items()}
    if isinstance(value, list):
        return [written(each) for each in value]
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="microseconds")
    if isinstance(value, Decimal | date):
        return str(value)
    return value


def suite_yaml(rules: Iterable[Mapping[str, Any]]) -> str:
    """The text of a suite, by another YAML writer than Headgate's."""
    sink = io.StringIO()
    YAML(typ="safe").dump({"expectations": [written(dict(rule)) for rule in rules]}, sink)
    return sink.getvalue()


def suite_of(text: str, types: Mapping[str, DataType] = TYPES) -> Suite:
    """The suite of a silver table with such columns. Fails if anything is wrong with it."""
    report = ProblemReport(Path("expectations/rows.yml"))
    suite = read_suite("rows", text, RowSubject(types), report)
    assert not report.problems, "\n".join(map(str, report.problems))
    return suite
