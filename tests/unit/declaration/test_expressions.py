"""What an expression may hold, and the types it has."""

from __future__ import annotations

import re

import pytest

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.expression import (
    parse_column,
    parse_condition,
    parse_expression,
    parse_scalar,
)
from headgate.declaration.expressions.functions import functions
from headgate.declaration.expressions.inference import Unresolved
from headgate.declaration.types import BOOLEAN, DOUBLE, INT, STRING
from tests.unit.declaration.nested_examples import EXAMPLES, SCOPE

REFUSED = {
    # The result may change, or does not depend on this row alone.
    "rand() < 0.5": "is not deterministic",
    "uuid()": "is not deterministic",
    "current_timestamp()": "is not deterministic",
    "current_date": "is not deterministic",
    "now() > ts": "is not deterministic",
    "monotonically_increasing_id()": "is not deterministic",
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
    # They use other code, other tables or other rows.
    "java_method('java.lang.System', 'exit', 1)": "runs code outside",
    "reflect('java.util.UUID', 'randomUUID')": "runs code outside",
    "(select 1)": "a subquery is not supported",
    "exists(select 1)": "a subquery is not supported",
    "i in (select 1)": "IN takes a list",
    "sum(i)": "sum() is a measure: it belongs under measures",
    "mean(i)": "mean() is a measure: it belongs under measures",
    "collect_set(i)": "collect_set() is an aggregate that is not supported",
    "row_number() over (order by i)": "not supported",
    "sum(i) over ()": "a window function",
    "sum(i) filter (where i > 1)": "FILTER is not supported",
    "transform(s, x -> x)": "transform() takes an array, not a string",
    "s -> s": "not supported",
    "*": "not supported",
    "i; i": "one expression only",
    "lower(s,)": "a value is missing between , and )",
    "coalesce(s,,u)": "a value is missing between , and ,",
    "to_timestamp(, 'yyyyMM')": "a value is missing between ( and ,",
    "ns -> 1BD": "a number stands where none can be",
    "delete from i": "does not parse",
    "i as j": "an alias is not supported",
    "i j": "not supported",
    "clean.i": "unknown column 'clean'",
    "lower(s).x": "a string has no field 'x'",
    ":parameter": "unexpected ':'",
    "?": "unexpected '?'",
    "i -- note": "comments are not allowed",
    "/*+ broadcast */ i": "comments are not allowed",
    "s collate unicode": "not supported",
    # Some data would make them fail or fill the memory.
    "raise_error('x')": "would stop the pipeline",
    "assert_true(ok)": "would stop the pipeline",
    "element_at(split(s, ','), 0)": "from -2147483647 to 2147483647",
    "element_at(split(s, ','), 2147483648)": "from -2147483647 to 2147483647",
    "element_at(split(s, ','), -2147483648)": "from -2147483647 to 2147483647",
    "explode(ns)": "returns several rows for one",
    "s rlike u": "must be a literal text",
    "s rlike '(a|b)*'": "repeats a group without bound",
    "s rlike '(a{1,9}){1,999}'": "repeats a group without bound",
    "s rlike '(?=a)'": "not supported",
    "s rlike '['": "not supported",
    "s rlike '[a&&b]'": "not supported",
    "s rlike 'a**'": "not a regular expression",
    "s like 'a\\\\b'": "a backslash may only precede",
    "regexp_extract(s, 'a+')": "has 0 groups, not 1",
    "ts + interval '--5' day": "a whole number and one unit",
    "ts + interval '--5 days'": "a whole number and one unit",
    "ts + interval 'x5 day'": "a whole number and one unit",
    "ts + interval '5day'": "a whole number and one unit",
    "ts + interval '\u0665' day": "a whole number and one unit",
    "ts + interval 5 `day`": "a whole number and one unit",
    "timestamp '2026-01-31 12:00:00+19:00'": "is not a timestamp",
    "timestamp '2026-01-31 12:00:00+10:75'": "is not a timestamp",
    "from_utc_timestamp(ts, 'Mars/Base')": "not an IANA time zone",
    "from_utc_timestamp(ts, 'ROC')": "not a time zone of Java",
    "to_utc_timestamp(ts, 'localtime')": "not a time zone of Java",
    "to_utc_timestamp(ts, 'Factory')": "not a time zone of Java",
    "date_format(ts, 'QQQQQ')": "not a part of a date pattern",
    "to_date(s, 'yyyy-dd')": "needs a year, a month and a day",
    "to_date(s, 'VV')": "not a part of a date pattern",
    "unix_timestamp()": "takes 1 argument, not 0",
    # Types that do not go together.
    "s + 1": "+ takes numbers",
    "+s": "+ takes numbers",
    "+d = d": "+ takes numbers, and d is a date",
    "- +ok": "+ takes numbers, and ok is a boolean",
    "+null": "+ with null is always null",
    "ts - ts2": "use date_add, datediff",
    "x div 2": "div takes exact numbers, and x is a double",
    "p div f": "div takes exact numbers, and f is a float",
    "i = s": "compares an int with a string",
    "s = 1": "compares a string with an int",
    "ts in ('2026-01-31T12:00:00Z')": "write timestamp '2026-01-31T12:00:00Z'",
    "ts not in (ts2, '2026-01-31')": "write timestamp '2026-01-31'",
    "'2026-01-31' in (ts)": "write timestamp '2026-01-31'",
    "d in ('2026-01-31', ts)": "IN compares a timestamp with text as text",
    "ok and i": "AND takes conditions",
    "case when i then 1 end": "WHEN takes a condition",
    "case when null then 1 end": "WHEN takes a condition, and NULL is not one",
    "case when ok then 1 else 'x' end": "CASE mixes int and string",
    "coalesce(i, 'x')": "mixes int and string",
    "i like 'a'": "takes a string, not an int",
    "lower(i)": "takes a string, not an int",
    "cast(d as int)": "cannot be cast",
    "cast(i as date)": "cannot be cast",
    "cast(s as text)": "not a supported type",
    "cast(s as int64)": "not a supported type",
    "cast(s as varchar(3))": "not a supported type",
    "null": "is always null",
    "i + null": "is always null",
    "interval 1 day": "can only be added",
    "s[0]": "takes an array",
    # Parts of nested values.
    "address.cty": "there is no field 'cty'",
    "address.CITY": "there is no field 'CITY'",
    "address.city.name": "a string has no field 'name'",
    "address.from": "the field 'from' is written in backquotes",
    "address.*": "is not a column",
    "address.lower(s)": "a field name must follow the dot",
    "addres.city": "unknown column 'addres'",
    "address['city']": "[ ] takes an array and a position, or a map and a key",
    "tags.k": "a map has no fields; write ['k']",
    "tags[0]": "the key in [ ] must be a string",
    "items['sku']": "the position in [ ] must be a whole number",
    "ns[1.5]": "the position in [ ] must be a whole number",
    "ns[0, 1]": "[ ] takes one position",
    "tags = tags": "compares a map<string,string> with a map<string,string>",
    "maps in (maps)": "compares an array<map",
    "address = tags": "cast one of them",
    "cast(s as array<string>)": "not a supported type",
    "items || s": "joins texts",
    "coalesce(ns, texts)": "mixes array<bigint> and array<string>",
    "size(s)": "size() takes an array or a map, not a string",
    "array_distinct(items)": "takes an array of values without parts",
    "array_max(maps)": "takes an array of values without maps",
    "sort_array(ns, ok)": "must be true or false",
    "array_contains(ns, s)": "looks for a bigint, and s is a string",
    "array_contains(ns, null)": "looks for a bigint, and NULL is a void",
    "array_contains(days, ts)": "looks for a date",
    "array_contains(null, 1)": "array_contains() with null is always null",
    "array_position(null, 1)": "array_position() with null is always null",
    "array_position(ns, 1.5)": "looks for a bigint, and 1.5 is a decimal(2,1)",
    "array_position(xs, p)": "looks for a double, and p is a decimal(18,2)",
    "array_position(items.price, b)": "looks for a decimal(18,2), and b is a bigint",
    "array_position(items.price, w)": "looks for a decimal(18,2), and w is a decimal(38,10)",
    "array_contains(maps, maps[0])": "looks for a map",
    "element_at(tags, i)": "takes a string as a key",
    "element_at(tags, null)": "takes a string as a key",
    "map_keys(ns)": "map_keys() takes a map",
    "map_contains_key(tags, null)": "map_contains_key() with null is always null",
    "map_contains_key(null, 'k')": "map_contains_key() with null is always null",
    # Lambdas.
    "exists(items)": "exists() takes 2 arguments, not 1",
    "exists(items, ok)": "exists() takes a lambda such as x -> x > 0, not ok",
    "filter(x -> x, ns)": "filter() takes a value, not x -> x",
    "exists(items, e -> e.qty)": "takes a condition after ->, and e.qty is an int",
    "exists(items, e -> e.prize > 1)": "there is no field 'prize'",
    "exists(items, (e, k) -> ok)": "has 2 variables, not 1",
    "aggregate(ns, 0L, a -> a)": "has 1 variable, not 2",
    "filter(ns, (e, e) -> e > 1)": "have the same name",
    "filter(ns, (e, E) -> e > 1)": "have the same name",
    "exists(ns, i -> i > 1)": "'i' has the name of a column",
    "exists(ns, I -> I > 1)": "'I' has the name of a column",
    "exists(grid, k -> exists(k, k -> k > 1))": "'k' has the name of another variable",
    "exists(ns, end -> end > 1)": "cannot name a variable",
    "exists(ns, `k` -> `k` > 1)": "cannot name a variable",
    "exists(ns, k -> K > 1)": "unknown column 'K'",
    "k + size(filter(ns, k -> k > 1))": "unknown column 'k'",
    "exists(ns, k -> rand() > k)": "is not deterministic",
    "exists(null, k -> true)": "exists() takes an array, not a void",
    "exists(items, k -> exists(ns, n -> n = k.qty))": "ns is an array<bigint> from outside",
    "exists(items, k -> exists(k.tags, n -> size(k.tags) > 1))": "from outside of the lambda",
    "exists(texts, k -> tags[k] is null)": "tags is a map<string,string> from outside",
    "transform(texts, k -> null)": "the lambda is always null",
    "transform(ns, k -> s)": "would copy s into every element",
    "transform(grid, k -> transform(k, n -> s))": "would copy s into every element",
    "transform(ns, k -> lpad('', 60000))": "cannot pad text",
    f"transform(ns, k -> '{'x' * 65}')": "at most 64 characters",
    f"transform(ns, k -> r'{'x' * 65}')": "at most 64 characters",
    "aggregate(texts, '', (a, k) -> concat(a, k))": "which could grow with every element",
    "aggregate(ns, ns, (a, k) -> a)": "which could grow with every element",
    "aggregate(ns, null, (a, k) -> k)": "starts with a number",
    "aggregate(ns, 0, (a, k) -> a + k)": "starts with an int, but the lambda returns a bigint",
    "aggregate(ns, 0, (a, k) -> null)": "the lambda returns a void",
    # Spark groups the operators in an order that may surprise.
    "ok = s like 'a'": "write parentheses",
    "s || i + 1": "write parentheses",
    "i & b || s": "write parentheses around i & b",
    "i | b || s": "write parentheses around i | b",
    "i ^ b || s": "write parentheses around i ^ b",
    "i = 1 = ok": "write parentheses",
    # Text that two parsers read differently.
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
    f"ts + interval '{'9' * 5000}' day": "a whole number and one unit",
    "9" * 5000: "a number of 5,000 characters is too long",
    "level between 1 and " + "9" * 5000 + "L": "a number of 5,001 characters is too long",
    "1.5L": "the number 1.5L is not whole; remove the L",
    "1e5L": "the number 1e5L is not whole; remove the L",
    "1e400": "the number 1e400 is outside the range of a double",
    "-1e400": "outside the range of a double",
    "1e400D": "outside the range of a double",
    "1e-99999999999": "outside the range of a double",
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


@pytest.mark.parametrize(
    "text",
    ["comment is not null", "length(describe) > 1", "show like 'a%'", "length(all) > 1", "use = s"],
)
def test_no_word_begins_a_statement(text: str, caplog: pytest.LogCaptureFixture) -> None:
    columns = dict.fromkeys(("comment", "describe", "show", "all", "use", "s"), STRING)
    assert parse_condition(text, columns).text == text
    assert not caplog.records


def test_a_column_that_needs_backquotes_is_named() -> None:
    columns = {"values": INT, "of": SCOPE["address"]}
    with pytest.raises(Invalid, match="the column 'values' is written in backquotes: `values`"):
        parse_condition("1 < values", columns)
    assert parse_condition("1 < `values` or of.zip > 1", columns).type == BOOLEAN
    with pytest.raises(Invalid, match="not supported"):
        parse_condition("values is not null", {"n": INT})


def test_an_unknown_column_names_the_nearest() -> None:
    with pytest.raises(Invalid) as caught:
        parse_expression("ordr + 1", SCOPE)
    assert caught.value.nearest == "order"


def test_an_unknown_field_names_the_nearest() -> None:
    for text, guess in {
        "address.at.lng": "lon",
        "exists(items, e -> e.prize > 1)": "price",
    }.items():
        with pytest.raises(Invalid) as caught:
            parse_expression(text, SCOPE)
        assert caught.value.nearest == guess


def test_all_that_is_wrong_in_a_lambda_is_said_at_once() -> None:
    with pytest.raises(Invalid) as caught:
        parse_expression("filter(itms, e -> e.prize > 1) and exists(ns, e -> uppr(e) = i)", SCOPE)
    said = [caught.value.message, *(other.message for other in caught.value.others)]
    assert said == ["unknown column 'itms'", "unknown function uppr()"]


def test_keys_take_one_value() -> None:
    with pytest.raises(Invalid, match="'items' must be one value, and is array<"):
        parse_column("items", SCOPE)
    with pytest.raises(Invalid, match="must be one value, not array<string>"):
        parse_scalar("split(s, ',')", SCOPE)
    assert parse_scalar("items[0].sku", SCOPE).type == STRING


def test_null_may_stand_for_a_number() -> None:
    assert parse_expression("pmod(i, null)", SCOPE).type == DOUBLE
    assert parse_expression("coalesce(null, i, null)", SCOPE).type == INT


def test_a_column_whose_type_is_not_known_is_unresolved() -> None:
    with pytest.raises(Unresolved):
        parse_expression("lower(broken)", {"broken": None})


def test_a_condition_is_boolean() -> None:
    assert parse_condition("i > 1", SCOPE).type == BOOLEAN
    with pytest.raises(Invalid, match="must be a condition, not an int"):
        parse_condition("i", SCOPE)
