"""The results of expressions over nested values in Spark, also for nulls, gaps and odd sizes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.declaration.expressions.expression import parse_expression
from headgate.declaration.type_parser import parse_type
from headgate.declaration.types import STRING, Array, DataType, Map, Struct, extends
from headgate.lake.tables.frames import arrow_schema, struct_type
from tests.unit.declaration.nested_examples import CALLS, EXAMPLES, NESTED, SCOPE

pytestmark = pytest.mark.spark

SOLD = datetime(2026, 1, 31, 12, tzinfo=UTC)
FULL: dict[str, Any] = {
    "i": 1,
    "s": "k",
    "u": "b",
    "ok": True,
    "d": date(2026, 1, 1),
    "ts": SOLD,
    "address": {"city": "Oslo", "zip": 7, "at": {"lat": 1.5, "lon": None}, "from": None},
    "items": [
        {"sku": "a", "price": Decimal("1.50"), "qty": 2, "sold": SOLD, "tags": ["x", "a"]},
        None,
        {"sku": "b", "price": None, "qty": 5, "sold": None, "tags": None},
    ],
    "tags": {"k": "v", "n": None},
    "counts": {"k": [4, 5]},
    "ns": [3, 1, None, 3],
    "xs": [float("nan"), 1.0],
    "days": [date(9999, 12, 31)],
    "grid": [[2, 1], [], None],
    "texts": ["2026-02-01", "+999999999-01-01", None],
    "maps": [{"k": 1}, None],
}
WITH_PARTS = [name for name in SCOPE if name in FULL and isinstance(FULL[name], dict | list)]
EMPTY = {name: type(FULL[name])() if name != "address" else {} for name in WITH_PARTS}
ROWS: tuple[dict[str, Any], ...] = (FULL, EMPTY, {})
"""A row with all values, a row with empty values, and a row of nulls."""

VALUES: dict[str, tuple[Any, Any, Any]] = {
    "address.city": ("Oslo", None, None),
    "address.at.lat": (1.5, None, None),
    "address.at.lon": (None, None, None),
    "items[0].sku": ("a", None, None),
    "items[1].sku": (None, None, None),
    "items[9].sku": (None, None, None),
    "items[-1].sku": (None, None, None),
    "items[0].tags[1]": ("a", None, None),
    "items.qty": ([2, None, 5], [], None),
    "tags['k']": ("v", None, None),
    "tags['none']": (None, None, None),
    "tags[s]": ("v", None, None),
    "counts['k'][1]": (5, None, None),
    "size(ns)": (4, 0, -1),
    "cardinality(tags)": (2, 0, -1),
    "array_size(ns)": (4, 0, None),
    "element_at(ns, -1)": (3, None, None),
    "element_at(ns, 9)": (None, None, None),
    "element_at(tags, 'none')": (None, None, None),
    "get(ns, -1)": (None, None, None),
    "sort_array(map_keys(tags))": (["k", "n"], [], None),
    "map_values(counts)": ([[4, 5]], [], None),
    "map_contains_key(tags, 'n')": (True, False, None),
    "array_contains(ns, 1)": (True, False, None),
    "array_contains(ns, 2)": (None, False, None),
    "array_position(ns, 1)": (2, 0, None),
    "array_distinct(ns)": ([3, 1, None], [], None),
    "array_compact(ns)": ([3, 1, 3], [], None),
    "array_min(ns)": (1, None, None),
    "array_max(ns)": (3, None, None),
    "sort_array(ns)": ([None, 1, 3, 3], [], None),
    "sort_array(ns, false)": ([3, 3, 1, None], [], None),
    "array_join(texts, '|')": ("2026-02-01|+999999999-01-01", "", None),
    "exists(items, e -> e.price > 1)": (True, False, None),
    "exists(items, e -> e.price > 2)": (None, False, None),
    "exists(items, e -> exists(e.tags, y -> y = e.sku))": (True, False, None),
    "forall(ns, e -> e > 0)": (None, True, None),
    "filter(ns, e -> e > 1)": ([3, 3], [], None),
    "filter(ns, (e, k) -> k < 2)": ([3, 1], [], None),
    "filter(items, e -> e.qty > 2)[0].sku": ("b", None, None),
    "transform(items, e -> e.qty * 2)": ([4, None, 10], [], None),
    "transform(ns, (e, k) -> e + k)": ([3, 2, None, 6], [], None),
    "transform(items, e -> concat(e.sku, '!'))": (["a!", None, "b!"], [], None),
    "transform(days, e -> e + interval 1 day)[0]": (None, None, None),
    "aggregate(ns, 0L, (a, e) -> a + coalesce(e, 0))": (7, 0, None),
    "aggregate(ns, 0L, (a, e) -> a + coalesce(e, 0), a -> a / 2)": (3.5, 0.0, None),
    "reduce(ns, 0L, (a, e) -> greatest(a, e))": (3, 0, None),
    "transform(texts, e -> to_date(e, 'yyyy-MM-dd'))[0]": (date(2026, 2, 1), None, None),
    "transform(texts, e -> to_date(e, 'yyyy-MM-dd'))[1]": (None, None, None),
    "exists(maps, e -> e['k'] = 1)": (True, False, None),
    "ns = array_compact(ns)": (False, True, None),
    "address <=> null": (False, False, True),
}


def _rows(spark: SparkSession) -> DataFrame:
    type_ = struct_type(SCOPE)
    rows = [tuple(_filled(row.get(name), name) for name in SCOPE) for row in ROWS]
    return spark.createDataFrame(rows, type_)


def _filled(value: Any, name: str) -> Any:
    """A struct needs all its fields."""
    missing = {"city": None, "zip": None, "at": None, "from": None}
    return {**missing, **value} if name == "address" and value is not None else value


def _evaluated(spark: SparkSession, texts: list[str]) -> list[tuple[Any, ...]]:
    parsed = [F.expr(parse_expression(text, SCOPE).text).alias(text) for text in texts]
    return [tuple(row) for row in _rows(spark).select(*parsed).collect()]


def test_values_are_these(spark: SparkSession) -> None:
    texts = list(VALUES)
    found = dict(zip(texts, zip(*_evaluated(spark, texts), strict=True), strict=True))
    assert found == {text: VALUES[text] for text in texts}


def test_no_example_fails_on_any_row(spark: SparkSession) -> None:
    texts = list(EXAMPLES)
    assert [len(row) for row in _evaluated(spark, texts)] == [len(texts)] * len(ROWS)


def test_a_file_with_fewer_fields_reads_as_null(spark: SparkSession, tmp_path: Path) -> None:
    """As after an upgrade: a field that was added, also inside an array or a map, is null in rows
    that were written before."""
    x = "struct<x: int>"
    before = {"a": x, "b": f"array<{x}>", "c": f"map<string, {x}>"}
    older = struct_type({name: parse_type(text) for name, text in before.items()})
    after = {name: text.replace("x: int", "x: int, y: date") for name, text in before.items()}
    later = {name: parse_type(text) for name, text in after.items()}
    rows = pa.Table.from_pylist(
        [{"a": {"x": 1}, "b": [{"x": 2}, None], "c": [("k", {"x": 3})]}, {}], arrow_schema(older)
    )
    pq.write_table(rows, tmp_path / "before.parquet")
    frame = spark.read.schema(struct_type(later)).parquet(str(tmp_path))
    texts = ("a.x", "a.y", "b.x", "b.y", "c['k'].x", "c['k'].y")
    parsed = [F.expr(parse_expression(text, later).text).alias(text) for text in texts]
    assert [tuple(row) for row in frame.select(*parsed).collect()] == [
        (1, None, [2, None], [None, None], 3, None),
        (None,) * 6,
    ]


COMPARED = (
    "address = coalesce(address, address)",
    "address in (address)",
    "array_contains(items, items[2])",
    "array_max(items)",
    "array_position(items, items[0])",
    "items <=> array_compact(items)",
    "items[0] < items[2]",
    "sort_array(items)",
)
"""Expressions that compare whole structs."""


def _wider(type_: DataType) -> DataType:
    """A type with another field in each struct."""
    if isinstance(type_, Struct):
        fields = {name: _wider(of) for name, of in type_.fields}
        return Struct.of({**fields, "added": STRING})
    if isinstance(type_, Array):
        return Array(_wider(type_.element))
    return Map(type_.key, _wider(type_.value)) if isinstance(type_, Map) else type_


def test_a_field_that_is_null_changes_no_result(spark: SparkSession, tmp_path: Path) -> None:
    """Therefore tables continue after an upgrade that adds fields: a rebuild would give the same
    rows."""
    wide = {name: _wider(type_) for name, type_ in SCOPE.items()}
    before = _rows(spark)
    before.write.parquet(str(tmp_path / "rows"))
    after = spark.read.schema(struct_type(wide)).parquet(str(tmp_path / "rows"))

    def results(rows: DataFrame, scope: Mapping[str, DataType], texts: list[str]) -> list[str]:
        parsed = [F.expr(parse_expression(text, scope).text).alias(text) for text in texts]
        # JSON without nulls, and so without the added fields.
        return sorted(row[0] for row in rows.select(F.to_json(F.struct(*parsed))).collect())

    texts = [*NESTED, *CALLS, *COMPARED]
    for text in texts:
        old, new = (parse_expression(text, scope).type for scope in (SCOPE, wide))
        assert extends(new, old), text
    assert results(before, SCOPE, texts) == results(after, wide, texts)
