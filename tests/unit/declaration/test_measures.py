"""How a measure is called: its arguments, its filter, and what is said if it is wrong."""

from __future__ import annotations

import pytest

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.inference import Unresolved
from headgate.declaration.expressions.measure import parse_measure
from tests.unit.declaration.nested_examples import SCOPE

PLACES = "array<struct<`lat`: double, `lon`: double>>"


@pytest.mark.parametrize(
    ("text", "function", "arguments", "type_"),
    [
        ("count(*)", "count", [], "bigint"),
        ("count( * )", "count", [], "bigint"),
        ("count(s)", "count", ["s"], "bigint"),
        ("count(1)", "count", ["1"], "bigint"),
        ("count(items)", "count", ["items"], "bigint"),
        ("count(distinct s)", "count_distinct", ["s"], "bigint"),
        ("COUNT(DISTINCT lower(s))", "count_distinct", ["lower(s)"], "bigint"),
        ("count_distinct(d)", "count_distinct", ["d"], "bigint"),
        ("approx_count_distinct(b)", "approx_count_distinct", ["b"], "bigint"),
        ("sum(t)", "sum", ["t"], "bigint"),
        ("sum(p)", "sum", ["p"], "decimal(28,2)"),
        ("sum(p * i)", "sum", ["p * i"], "decimal(38,2)"),
        ("sum(x)", "sum", ["x"], "double"),
        ("sum(w)", "sum", ["w"], "decimal(38,10)"),
        ("avg(p)", "avg", ["p"], "decimal(22,6)"),
        ("avg(w)", "avg", ["w"], "decimal(38,14)"),
        ("avg(i)", "avg", ["i"], "double"),
        ("stddev(p)", "stddev", ["p"], "double"),
        ("min(s)", "min", ["s"], "string"),
        ("max(ts)", "max", ["ts"], "timestamp"),
        ("first(ok)", "first", ["ok"], "boolean"),
        ("last(if(ok, s, u))", "last", ["if(ok, s, u)"], "string"),
        ("count_if(i > 1 and ok)", "count_if", ["i > 1 and ok"], "bigint"),
        ("min_by(s, ts)", "min_by", ["s", "ts"], "string"),
        ("MAX_BY( coalesce(s, 'a, b'),\n  p\n)", "max_by", ["coalesce(s, 'a, b')", "p"], "string"),
        ("percentile(p, 0.95)", "percentile", ["p", "0.95"], "double"),
        ("percentile(i, 1)", "percentile", ["i", "1"], "double"),
        ("median(w)", "median", ["w"], "double"),
        ("mean(p)", "avg", ["p"], "decimal(22,6)"),
        ("STD(i)", "stddev", ["i"], "double"),
        ("stddev_samp(i)", "stddev", ["i"], "double"),
        ("stddev_pop(i)", "stddev_pop", ["i"], "double"),
        ("var_samp(i)", "variance", ["i"], "double"),
        ("var_pop(p)", "var_pop", ["p"], "double"),
        ("every(ok)", "bool_and", ["ok"], "boolean"),
        ("any(i > 1)", "bool_or", ["i > 1"], "boolean"),
        ("some(ok)", "bool_or", ["ok"], "boolean"),
        ("first_value(s)", "first", ["s"], "string"),
        ("last_value(s)", "last", ["s"], "string"),
        ("top_n(s, p, 3)", "top_n", ["s", "p", "3"], "array<string>"),
        ("top_n(address.at, ts, 100)", "top_n", ["address.at", "ts", "100"], PLACES),
        ("collect_list(p, 1)", "collect_list", ["p", "1"], "array<decimal(18,2)>"),
        ("Collect_List( ns, 10 )", "collect_list", ["ns", "10"], "array<array<bigint>>"),
    ],
)
def test_a_measure(text: str, function: str, arguments: list[str], type_: str) -> None:
    measure = parse_measure("m", text, SCOPE)
    assert (measure.name, measure.function) == ("m", function)
    assert [argument.text for argument in measure.arguments] == arguments
    assert (measure.filter, str(measure.type)) == (None, type_)


@pytest.mark.parametrize(
    ("text", "function", "filter_", "counted"),
    [
        ("count(*) filter (where ok)", "count", "ok", "case when ok then 1 end"),
        ("sum(p) FILTER(WHERE s = ')')", "sum", "s = ')'", "case when s = ')' then p end"),
        ("sum(p)\n  filter (\n    where (ok)\n  )", "sum", "(ok)", "case when (ok) then p end"),
        (
            "count(distinct i) filter (where s in ('a', 'b') or not ok)",
            "count_distinct",
            "s in ('a', 'b') or not ok",
            "case when s in ('a', 'b') or not ok then i end",
        ),
    ],
)
def test_a_filter_lets_its_rows_count(text: str, function: str, filter_: str, counted: str) -> None:
    measure = parse_measure("m", text, SCOPE)
    assert (measure.function, measure.filter, measure.argument()) == (function, filter_, counted)


def test_an_argument_without_a_filter_stays_as_it_is() -> None:
    measure = parse_measure("m", "min_by(s, ts)", SCOPE)
    assert (measure.argument(0), measure.argument(1)) == ("s", "ts")
    assert parse_measure("m", "count(*)", SCOPE).argument() == "1"


_WRITTEN = r"a filter is written as: filter \(where condition\)"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sum(s)", "takes a number"),
        ("avg(ts)", "takes a number"),
        ("stddev(ok)", "takes a number"),
        ("sum()", r"sum\(\) takes one argument, not 0: sum\(x\)"),
        ("sum(i, i)", r"sum\(\) takes one argument, not 2: sum\(x\)"),
        ("count(distinct)", r"count_distinct\(\) takes one argument, not 0"),
        ("count(distinct i, s)", r"count_distinct\(\) takes one argument, not 2"),
        ("sum(*)", "does not parse|is not supported"),
        ("min_by(s)", r"min_by\(\) takes 2 arguments, not 1: min_by\(x, order\)"),
        ("max(ns)", r"max\(\) takes one value, not array<bigint>"),
        ("count(distinct tags)", r"count_distinct\(\) takes one value"),
        ("max_by(s, ns)", r"max_by\(\) takes one value, not array<bigint>"),
        ("count_if(i)", r"count_if\(\) takes a condition, not an int"),
        ("every(i)", r"bool_and\(\) takes a condition, not an int"),
        ("median(s)", r"median\(\) takes a number, not a string"),
        ("percentile(s, 0.5)", r"percentile\(\) takes a number, not a string"),
        ("percentile(i)", r"percentile\(\) takes 2 arguments, not 1: percentile\(x, p\)"),
        ("percentile(i, 95)", "takes a number from 0 to 1 as p, such as 0.95"),
        ("percentile(i, -0.1)", "takes a number from 0 to 1 as p, such as 0.95"),
        ("percentile(i, x)", "takes a number from 0 to 1 as p, such as 0.95"),
        ("sum(distinct i)", r"only count\(distinct ...\) is"),
        (
            "collect_list(s)",
            r"takes 2 arguments, not 1: collect_list\(x, n\), with a whole number from 1 to",
        ),
        (
            "top_n(s, 3)",
            r"takes 3 arguments, not 2: top_n\(x, order, n\), with a whole number from 1 to 100",
        ),
        *(
            (
                call.format(n),
                rf"{call[:5]}.*\(\) takes a whole number from 1 to 100 as n, such as 10",
            )
            for call in ("top_n(s, p, {})", "collect_list(s, {})")
            for n in ("0", "-1", "101", "99999999999999999999", "1.5", "1e1", "i", "'3'", "10L")
        ),
        ("top_n(s, ns, 3)", r"top_n\(\) takes one value as order, not array<bigint>"),
        ("top_n(tags, i, 3)", r"top_n\(\) takes no map, and x is map<string,string>; take a part"),
        (
            "collect_list(maps, 3)",
            r"collect_list\(\) takes no map, and x is array<map<string,int>>",
        ),
        ("collect_list(distinct s, 3)", r"only count\(distinct ...\) is"),
        ("approx_top_k(s, 3)", r"approx_top_k\(\) is not a measure: count rows by the column"),
        ("mode(s)", "order the counts in headgate query"),
        ("corr(i, x)", r"corr\(\) is not a measure; the measures are approx_count_distinct, avg"),
        ("sum(i", "never closed"),
        ("sum(i) / 2", "must be one measure and nothing around it"),
        ("sum(i) over ()", "must be one measure and nothing around it"),
        ("sum(i) filter", _WRITTEN),
        ("sum(i) filter (i > 1)", _WRITTEN),
        ("sum(i) filter (where)", _WRITTEN),
        ("sum(i) filter (where i > 1", _WRITTEN),
        ("sum(i) filter (where i > 1) / 2", _WRITTEN),
        ("sum(i) filter where i > 1", _WRITTEN),
        ("sum(i) filter (where i)", "must be a condition, not an int"),
        ("sum(i) filter (where j > 1)", "unknown column 'j'"),
        ("sum(i) filter (where sum(i) > 1)", "is a measure"),
    ],
)
def test_a_wrong_measure_is_refused(text: str, problem: str) -> None:
    with pytest.raises(Invalid, match=problem):
        parse_measure("m", text, SCOPE)


@pytest.mark.parametrize(
    ("name", "measure"),
    [
        ("average", "avg"),
        ("any_value", "first"),
        ("percentile_approx", "percentile"),
        ("approx_percentile", "percentile"),
        ("countif", "count_if"),
        ("stdev", "stddev"),
        ("array_agg", "collect_list"),
        ("string_agg", "collect_list"),
        ("top_k", "top_n"),
        ("topn", "top_n"),
    ],
)
def test_the_measure_that_is_meant_is_named(name: str, measure: str) -> None:
    with pytest.raises(Invalid, match=rf"{name}\(\) is not a measure") as caught:
        parse_measure("m", f"{name}(i, 0.5)", SCOPE)
    assert caught.value.nearest == measure


def test_a_filter_over_a_column_with_an_unknown_type_is_unresolved() -> None:
    with pytest.raises(Unresolved):
        parse_measure("m", "count(*) filter (where broken)", {"broken": None})
