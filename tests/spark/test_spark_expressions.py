"""Expressions that Spark's analysis decides about: their types, values, refusals and failures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headgate.declaration.errors import Invalid
from headgate.declaration.expressions.expression import parse_expression
from headgate.declaration.expressions.functions import AGGREGATES, SPARK_FUNCTIONS, functions
from headgate.declaration.expressions.functions import REFUSED as NOT_ALLOWED
from headgate.lake.tables.frames import struct_type
from tests.spark.test_nested_values import ROWS, _filled
from tests.spark.test_types import _in_spark
from tests.support.rounds import IN_FULL
from tests.unit.declaration.nested_examples import SCOPE
from tests.unit.declaration.spark_examples import EXAMPLES, REFUSED

pytestmark = pytest.mark.spark

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
PLAIN: dict[str, Any] = {
    "t": 1, "i": 3, "b": 1_700_000_000, "f": 0.5, "x": 2.5, "p": Decimal("12.50"),
    "q": Decimal("1.2500"), "w": Decimal("7"), "s": "a-b=1,c", "u": "b", "ok": True,
    "d": date(2026, 1, 31), "ts": NOON, "ts2": NOON.replace(hour=13), "order": 1,
}  # fmt: skip
HOSTILE: tuple[dict[str, Any], ...] = (
    {"i": 2**31 - 1, "b": 2**63 - 1, "x": float("inf"), "s": "%zz", "u": "\\", "d": date.max},
    {"i": -(2**31), "b": -(2**63), "x": float("nan"), "s": "{", "u": "%", "d": date(1, 1, 1)},
    {"i": 0, "b": 0, "s": "", "u": "", "ns": [2**63 - 1], "texts": ["a", "a"], "tags": {"": None}},
    {"s": "12:30", "u": "now", "ts": datetime(9999, 12, 31, 23, tzinfo=UTC), "texts": [None]},
    {"s": "a" * 100_000, "u": "b" * 100_000, "i": 10**9, "texts": ["x" * 10_000] * 10},
)


NULL = {
    "add_months(to_date(s), 1)",
    "arrays_overlap(texts, array('x'))",
    "cast(to_date(s) as timestamp)",
    "element_at(ns, i)",
    "element_at(split(s, ','), i)",
    "elt(i, 'a', 'b')",
    "flatten(grid)",
    "from_csv(s, 'a int').a",
    "from_json(s, 'a int, b array<string>').a",
    "from_json(s, 'a timestamp', map('timestampFormat', 'yyyy-MM-dd')).a",
    "from_utc_timestamp(ts, s)",
    "get_json_object(s, '$..a')",
    "get_json_object(s, '$.items[*].sku')",
    "json_array_length(s)",
    "json_object_keys(s)",
    "map_from_arrays(texts, texts)",
    "parse_url(s, 'HOST')",
    "parse_url(s, 'QUERY', 'q')",
    "regexp_replace(s, 'a', '$1')",
    "sha2(s, i)",
    "to_number(s, '999')",
    "try_element_at(ns, i)",
    "try_to_number(s, '999.99')",
    "try_to_timestamp(s)",
    "ts > to_date(s)",
    "unix_timestamp(s)",
    "unix_timestamp(s, 'yyyy-MM-dd HH:mm:ss')",
    "variant_get(parse_json(s), '$.a', 'int')",
    "xpath_string(s, 'a/b')",
}
"""The examples that fail on the plain row, or are null there."""


def _values(
    spark: SparkSession, rows: Iterable[Mapping[str, Any]], texts: Sequence[str]
) -> list[tuple[str, ...]]:
    filled = [tuple(_filled(row.get(name), name) for name in SCOPE) for row in rows]
    frame = spark.createDataFrame(filled, struct_type(SCOPE))
    # As text, in which two NaN are equal.
    named = [F.expr(f"cast({text} as string)").alias(f"_{n}") for n, text in enumerate(texts)]
    return [tuple(map(str, row)) for row in frame.select(*named).collect()]


def test_the_types_are_these_and_those_of_what_runs(spark: SparkSession) -> None:
    found = {text: parse_expression(text, SCOPE) for text in EXAMPLES}
    assert {text: str(one.type) for text, one in found.items()} == EXAMPLES
    runs = {one.text: str(one.type) for one in found.values()}
    assert _in_spark(spark, SCOPE, runs) == runs


@pytest.mark.parametrize(("text", "says"), REFUSED.items())
def test_what_is_refused_has_a_reason(text: str, says: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_expression(text, SCOPE)
    assert says in caught.value.message


def test_values_are_those_of_spark(spark: SparkSession) -> None:
    rows = [{**ROWS[0], **PLAIN}]
    runs = [parse_expression(text, SCOPE).text for text in EXAMPLES]
    raw = [f"null_on_error({text})" for text in EXAMPLES]
    found, expected = (
        dict(zip(EXAMPLES, _values(spark, rows, t)[0], strict=True)) for t in (runs, raw)
    )
    assert found == expected
    assert {text for text, value in found.items() if value == "None"} == NULL


def test_no_row_makes_an_expression_fail(spark: SparkSession) -> None:
    rows = [*ROWS, *HOSTILE]
    runs = [parse_expression(text, SCOPE).text for text in EXAMPLES]
    assert len(_values(spark, rows, runs)) == len(rows)


GUARDED = {
    "length(repeat(s, 1048576))": 1_048_576,
    "repeat(s, 1048577)": None,
    "length(lpad(s, i, '0'))": 1_000_000,
    "lpad(s, i + 99999999, '0')": None,
    "length(space(i))": 1_000_000,
    "space(2147483647)": None,
    "size(array_repeat(s, 100000))": 100_000,
    "array_repeat(s, 100001)": None,
    "size(sequence(0, 100000))": 100_001,
    "sequence(0, 100001)": None,
    "size(sequence(d, d + interval 100 years))": 36_525,
    "sequence(d, d + interval 300 years)": None,
    "size(sequence(ts, ts + interval 1 day, interval 1 second))": 86_401,
    "sequence(ts, ts + interval 1 day, interval 1 millisecond)": None,
    "sequence(0L, 4611686018427387904L, 2305843009213693952L)[2]": 4_611_686_018_427_387_904,
    "array_insert(ns, i, 7L)": None,
    "size(array_insert(ns, 100000, 7L))": 100_000,
    "format_number(x, i)": None,
    "format_number(1234, '#,##0.0')": "1,234.0",
    "xpath_string(concat(repeat('<a>', 5000), repeat('</a>', 5000)), 'a')": "",
    "xpath_string(concat(repeat('<a>', 5001), repeat('</a>', 5001)), 'a')": None,
    "length(st_asbinary(st_geomfromwkb(unhex(concat('0107000000', '00000000')))))": 9,
    "hex(st_asbinary(st_geomfromwkb(unhex(repeat('010700000001000000', 50000)))))": None,
    "hex(aes_encrypt(s, '0000111122223333', 'GCM', 'DEFAULT', unhex(trim(' '))))": None,
    "map('a', s, 'a', s)": None,
    "map(s, 1, cast(null as string), 2)": None,
    "map('a', s)['a']": "-",
    "str_to_map('a=1,a=2', ',', '=')": None,
    "str_to_map('a=1,b=2', ',', '=')['b']": "2",
    "map_concat(tags, tags)": None,
    "map_concat(tags, map('z', 'y'))['z']": "y",
    "map_from_entries(array(struct('a', 1), struct('a', 2)))": None,
    "map_from_entries(array(struct('a', 1), struct('b', 2)))['b']": 2,
    "regexp_replace('abc', '(b)', '<$1>')": "a<b>c",
    "make_date(2026, 2, 30)": None,
    "make_date(12026, 2, 3)": None,
    "url_decode('%zz')": None,
}


def test_what_is_too_large_or_wrong_is_null(spark: SparkSession) -> None:
    row = {
        "i": 1_000_000,
        "s": "-",
        "ns": [1],
        "d": date(2026, 1, 1),
        "ts": NOON,
        "tags": {"k": ""},
    }
    filled = [tuple(_filled(row.get(name), name) for name in SCOPE)]
    frame = spark.createDataFrame(filled, struct_type(SCOPE))
    named = [F.expr(parse_expression(text, SCOPE).text).alias(text) for text in GUARDED]
    assert frame.select(*named).collect()[0].asDict() == GUARDED


def test_a_row_that_fails_leaves_nothing_to_the_next_one(spark: SparkSession) -> None:
    """Spark keeps a map under construction in the expression."""
    texts = {
        "map('k', s, u, s)": "{k -> 1, x -> 1}",
        "map_from_arrays(texts, texts)": "{x -> x}",
        "map_from_entries(transform(texts, e -> struct(e, e)))": "{x -> x}",
        "map_concat(tags, map('k', s))": "{t -> 1, k -> 1}",
        "str_to_map(s, ',', '=')": "{1 -> null}",
        "to_json(struct(s, u))": '{"s":"1","u":"x"}',
    }
    wrong = {"s": "a=1,a=2", "u": "k", "texts": ["x", "x", None], "tags": {"a": "", "k": ""}}
    right = {"s": "1", "u": "x", "texts": ["x"], "tags": {"t": "1"}}
    runs = [parse_expression(text, SCOPE).text for text in texts]
    rows = [row for _ in range(3) for row in (wrong, right)]
    found = _values(spark, rows, runs)
    assert [row for row in found if row[0] != "None"] == [tuple(texts.values())] * 3
    assert [row[:-1] for row in found if row[0] == "None"] == [("None",) * (len(texts) - 1)] * 3


def test_a_part_that_fails_is_null_wherever_spark_would_compute_it(spark: SparkSession) -> None:
    """Spark computes a part that is constant, occurs twice, or is an operand of BETWEEN before the
    expression, and the condition of a branch on its own."""
    number = "to_number(s, '999')"
    texts = {
        f"concat(hex({number}), hex({number}))": "CC",
        f"length(space(cast({number} as int)))": "12",
        f"case when {number} > 5 then {number} else 0 end": "12",
        f"if({number} > 5, 'a', 'b')": "a",
        f"{number} between 1 and 15": "true",
        f"nullif({number}, 5)": "12",
        f"nvl2({number}, {number} + 1, 0)": "13",
        f"{number} + 1": "13",
        f"if({number} > 5, 'a', url_decode('%zz'))": "a",
    }
    runs = [parse_expression(text, SCOPE).text for text in texts]
    rows = [{"s": "x"}, {"s": "12"}]
    assert _values(spark, rows, runs) == [("None",) * len(texts), tuple(texts.values())]
    for text, run in zip(texts, runs, strict=True):
        assert _values(spark, rows, [run]) == [("None",), (texts[text],)]


def test_the_names_are_those_of_spark(spark: SparkSession) -> None:
    listed = {row[0] for row in spark.sql("show system functions").collect()}
    listed = {name for name in listed if re.fullmatch("[a-z_0-9]+", name)}
    known = {*functions(), *NOT_ALLOWED, *AGGREGATES, *SPARK_FUNCTIONS}
    assert listed - known == NO_CALLS | TABLE_FUNCTIONS
    assert known - listed == {"timestampdiff", "timestampadd", "count_distinct"}


NO_CALLS = {"and", "or", "not", "between", "in", "div", "cast", "extract", "when", "case"}
NO_CALLS |= {"measure"}
TABLE_FUNCTIONS = {"range", "sql_keywords", "collations", "python_worker_logs"}
TABLE_FUNCTIONS |= {"variant_explode", "variant_explode_outer"}


def _documented(spark: SparkSession) -> Iterator[str]:
    """The expressions in Spark's documentation of its functions that are about no rows."""
    session: Any = spark
    registry = session._jsparkSession.sessionState().functionRegistry()
    found = registry.listFunction()
    for place in range(found.size()):
        examples = registry.lookupFunction(found.apply(place)).get().getExamples()
        for example in re.finditer(r"> SELECT (.*?);\s*\n", examples, re.DOTALL):
            if " from " not in example[1].lower():
                yield example[1].strip()


def test_what_spark_documents_has_the_documented_value(spark: SparkSession) -> None:
    texts = sorted(set(_documented(spark)))
    assert len(texts) > 800
    accepted: dict[str, str] = {}
    for text in texts if IN_FULL else texts[::20]:
        try:
            accepted[text] = parse_expression(text, {}).text
        except Invalid:
            continue
    assert len(accepted) > (600 if IN_FULL else 25)
    different = {}
    for text, run in accepted.items():
        named = [F.expr(f"cast({each} as string)") for each in (f"null_on_error({text})", run)]
        raw, ours = spark.range(1).select(*named).collect()[0]
        if raw != ours:
            different[text] = raw, ours
    assert different == {}
