"""What an expression may hold, and the types it has."""

from __future__ import annotations

import re

import pytest

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.expression import (
    parse_condition,
    parse_expression,
    parse_measure,
)
from headgate.declaration.expressions.functions import functions
from headgate.declaration.expressions.inference import Unresolved
from headgate.declaration.measures import MEASURES
from headgate.declaration.types import BOOLEAN, DOUBLE, INT, Decimal
from tests.unit.declaration.expression_examples import EXAMPLES, SCOPE

REFUSED = {
    # Not the same each time, or not of this row alone.
    "rand() < 0.5": "gives another result each time",
    "uuid()": "gives another result each time",
    "current_timestamp()": "gives another result each time",
    "current_date": "gives another result each time",
    "now() > ts": "gives another result each time",
    "monotonically_increasing_id()": "gives another result each time",
    "cast('now' as timestamp)": "is not a timestamp",
    "timestamp 'now'": "is not a timestamp",
    "date 'today'": "is not a date",
    "ts > 'yesterday'": "is not a timestamp",
    "d in ('today')": "is not a date",
    "cast(concat('to', 'day') as date)": "written as a literal",
    "to_date(concat('to', 'day'))": "written as a literal",
    "cast(s as timestamp)": "read as a timestamp by to_timestamp",
    "s::timestamp": "read as a timestamp by to_timestamp",
    "'${env:HOME}'": "Spark would substitute",
    "input_file_name()": "reads where the data came from",
    # Other code, other tables, other rows.
    "java_method('java.lang.System', 'exit', 1)": "runs code outside",
    "reflect('java.util.UUID', 'randomUUID')": "runs code outside",
    "(select 1)": "a subquery is not supported",
    "exists(select 1)": "a subquery is not supported",
    "i in (select 1)": "IN takes a list",
    "sum(i)": "belongs under measures",
    "row_number() over (order by i)": "not supported",
    "sum(i) over ()": "a window function",
    "sum(i) filter (where i > 1)": "FILTER is not supported",
    "transform(s, x -> x)": "unknown function",
    "s -> s": "not supported",
    "*": "not supported",
    "i; i": "one expression only",
    "i as j": "an alias is not supported",
    "i j": "not supported",
    "clean.i": "nested fields come next",
    "lower(s).x": "not supported",
    ":parameter": "unexpected ':'",
    "?": "unexpected '?'",
    "i -- note": "comments are not allowed",
    "/*+ broadcast */ i": "comments are not allowed",
    "s collate unicode": "not supported",
    # Could fail, or fill the memory, on data.
    "raise_error('x')": "would stop the pipeline",
    "assert_true(ok)": "would stop the pipeline",
    "element_at(split(s, ','), 0)": "can fail on data",
    "parse_url(s, 'HOST')": "can fail on data",
    "timestamp_millis(b)": "can fail on data",
    "repeat(s, 100)": "can fail on data",
    "from_json(s, 'a int')": "can fail on data",
    "s rlike u": "must be a literal text",
    "s rlike '(a|b)*'": "repeats a group without bound",
    "s rlike '(a{1,9}){1,999}'": "repeats a group without bound",
    "s rlike '(?=a)'": "not supported",
    "s rlike '['": "not supported",
    "s rlike 'a**'": "not a regular expression",
    "s like 'a\\\\b'": "a backslash stands before",
    "s like '!%' escape '!'": "ESCAPE is not supported",
    "regexp_extract(s, 'a+')": "has 0 groups, not 1",
    "regexp_replace(s, 'a', '$1')": "cannot hold a backslash or a $",
    "replace(s, 'a', u)": "must be a literal text",
    "replace(s, 'a', '01234567890123456')": "at most 16 characters",
    "lpad(s, i, '0')": "must be a whole number",
    "lpad(s, 2000000000)": "0 to 65536",
    "date_add(d, i)": "must be a whole number",
    "add_months(to_date(s), 1)": "cannot overflow",
    "date_trunc('DAY', cast(b as timestamp))": "cannot overflow",
    "cast(b as timestamp) + interval 1 day": "could overflow",
    "cast(to_date(s) as timestamp)": "could overflow",
    "ts > to_date(s)": "mixes a date made from text",
    "ts + interval 999999999 hours": "has at most",
    "from_utc_timestamp(ts, s)": "must be a literal text",
    "from_utc_timestamp(ts, 'Mars/Base')": "not an IANA time zone",
    "date_format(ts, 'QQQQQ')": "not a part of a date pattern",
    "to_date(s, 'yyyy-dd')": "needs a year, a month and a day",
    "to_date(s, 'VV')": "not a part of a date pattern",
    "get_json_object(s, '$..a')": "not a JSON path",
    "unix_timestamp()": "takes 1 arguments",
    # Types that do not go together.
    "s + 1": "+ takes numbers",
    "ts - ts2": "use date_add, datediff",
    "x div 2": "div takes exact numbers, and x is a double",
    "p div f": "div takes exact numbers, and f is a float",
    "i = s": "compares a int with a string",
    "s = 1": "compares a string with a int",
    "ok and i": "AND takes conditions",
    "case when i then 1 end": "WHEN takes a condition",
    "case when ok then 1 else 'x' end": "CASE mixes int and string",
    "coalesce(i, 'x')": "mixes int and string",
    "i like 'a'": "takes a string, not a int",
    "lower(i)": "takes a string, not a int",
    "cast(d as int)": "cannot be cast",
    "cast(i as date)": "cannot be cast",
    "cast(s as text)": "not a supported type",
    "cast(s as int64)": "not a supported type",
    "cast(s as varchar(3))": "not a supported type",
    "split(s, ',')": "nested types come next",
    "null": "is always null",
    "i + null": "is always null",
    "interval 1 day": "can only be added",
    "extract(second from ts)": "EXTRACT cannot give second",
    "s[0]": "takes an array",
    # Read by Spark in another order than one might think.
    "ok = s like 'a'": "write parentheses",
    "s || i + 1": "write parentheses",
    "i = 1 = ok": "write parentheses",
    # Text that two parsers read apart.
    r"'\d'": "SQL drops the backslash",
    "'a' 'b'": "side by side",
    "'a''b'": "side by side",
    "'open": "is never closed",
    "lower(s": "does not parse",
    "i +": "does not parse",
    "`lower`(s)": "without backquotes",
    "i isnull": "unexpected word",
    "int '5'": "unexpected text",
    "99999999999999999999L": "too large for a bigint",
    "1" * 40: "more than 38 digits",
    "(" * 300 + "i" + ")" * 300: "nested too deeply",
    " + ".join(["i"] * 3000): "longer than 8000 characters",
    "": "is empty",
    "é": "unexpected 'é'",
    # Names.
    "I": "unknown column 'I'",
    "ii": "unknown column 'ii'",
    "uppr(s)": "unknown function uppr()",
}


@pytest.mark.parametrize(("text", "type_"), EXAMPLES.items())
def test_an_expression_has_the_type_spark_gives_it(text: str, type_: str) -> None:
    assert str(parse_expression(text, SCOPE).type) == type_


def test_every_allowed_function_has_an_example() -> None:
    called = {name for text in EXAMPLES for name in re.findall(r"([a-z0-9_]+)\(", text)}
    assert set(functions()) - called == set()


@pytest.mark.parametrize(("text", "says"), REFUSED.items())
def test_what_is_not_safe_or_not_typed_is_refused(text: str, says: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_expression(text, SCOPE)
    assert says in caught.value.message


def test_an_unknown_column_names_the_nearest() -> None:
    with pytest.raises(Invalid) as caught:
        parse_expression("ordr + 1", SCOPE)
    assert caught.value.nearest == "order"


def test_null_may_stand_for_a_number() -> None:
    assert parse_expression("pmod(i, null)", SCOPE).type == DOUBLE
    assert parse_expression("coalesce(null, i, null)", SCOPE).type == INT


def test_a_column_whose_type_is_not_known_is_unresolved() -> None:
    with pytest.raises(Unresolved):
        parse_expression("lower(broken)", {"broken": None})


def test_a_condition_is_boolean() -> None:
    assert parse_condition("i > 1", SCOPE).type == BOOLEAN
    with pytest.raises(Invalid, match="must be a condition, not a int"):
        parse_condition("i", SCOPE)


@pytest.mark.parametrize(
    ("text", "function", "argument", "type_"),
    [
        ("count(*)", "count", None, "bigint"),
        ("count( * )", "count", None, "bigint"),
        ("count(s)", "count", "s", "bigint"),
        ("count(1)", "count", "1", "bigint"),
        ("count(distinct s)", "count_distinct", "s", "bigint"),
        ("COUNT(DISTINCT lower(s))", "count_distinct", "lower(s)", "bigint"),
        ("count_distinct(d)", "count_distinct", "d", "bigint"),
        ("approx_count_distinct(b)", "approx_count_distinct", "b", "bigint"),
        ("sum(t)", "sum", "t", "bigint"),
        ("sum(p * i)", "sum", "p * i", "decimal(38,2)"),
        ("sum(x)", "sum", "x", "double"),
        ("sum(w)", "sum", "w", "decimal(38,10)"),
        ("avg(p)", "avg", "p", "decimal(22,6)"),
        ("avg(w)", "avg", "w", "decimal(38,14)"),
        ("avg(i)", "avg", "i", "double"),
        ("stddev(p)", "stddev", "p", "double"),
        ("min(s)", "min", "s", "string"),
        ("max(ts)", "max", "ts", "timestamp"),
        ("first(ok)", "first", "ok", "boolean"),
        ("last(if(ok, s, u))", "last", "if(ok, s, u)", "string"),
    ],
)
def test_a_measure(text: str, function: str, argument: str | None, type_: str) -> None:
    measure = parse_measure(text, SCOPE)
    assert (measure.function, measure.argument, str(measure.type)) == (function, argument, type_)


@pytest.mark.parametrize("text", ["sum(s)", "avg(ts)", "stddev(ok)"])
def test_sums_take_numbers(text: str) -> None:
    with pytest.raises(Invalid, match="takes a number"):
        parse_measure(text, SCOPE)


def test_the_sum_of_a_decimal_gains_ten_digits() -> None:
    assert MEASURES["sum"].type_of(Decimal(20, 3)) == Decimal(30, 3)
