"""Declarations with nested types."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.declaration.errors import DeclarationProblem
from headgate.declaration.model import Explode, Pipeline
from headgate.declaration.plan import describe
from headgate.declaration.type_parser import parse_type

Read = Callable[[str], Pipeline]
Refuse = Callable[[str], tuple[DeclarationProblem, ...]]
ITEMS = "array<struct<sku: string, price: decimal(18,2), tags: map<string, string>>>"


@pytest.fixture(name="base")
def nested_text(base: str) -> str:
    return base.replace("        day: date\n", f"        day: date\n        items: '{ITEMS}'\n")


def test_columns_of_nested_types_load(base: str, read: Read) -> None:
    text = base.replace(
        "      note: lower(note)\n",
        "      skus: transform(items, x -> x.sku)\n      dear: filter(items, x -> x.price > 1)\n",
    )
    pipeline = read(text.replace("orders: count(*)", "orders: count(items)"))
    types = {column.name: str(column.type) for column in pipeline.silver["clean"].schema}
    assert types["items"] == types["dear"] == str(parse_type(ITEMS))
    assert types["skus"] == "array<string>"
    assert f"items           {parse_type(ITEMS)}" in describe(pipeline)


@pytest.mark.parametrize(
    ("old", "new", "key", "says"),
    [
        ("price: decimal(18,2), tags", "price: decimal, tags", "schema.items", "element.price: "),
        ("event_id: [order_id]", "event_id: [items]", "event_id", "an id is one value"),
        ("column: ordered_at", "column: items", "event_time.column", "the format iso reads a"),
        ("format: json", "format: csv", "schema.items", "the format csv has no array<struct<"),
        ("by: [customer]", "by: [items]", "gold.sales.by", "'items' must be one value"),
        ("by: [customer]", "by: {k: items.sku}", "by.k", "must be one value, not array<string>"),
        ("sum(price)", "max(items)", "measures.revenue", "max() takes one value"),
        ("revenue / orders", "split('a', ',')", "columns.mean", "must be one value"),
        ("price > 0", "items[0].pric > 0", "clean.where", "there is no field 'pric'"),
    ],
)
def test_where_they_may_not_be(
    base: str, refuse: Refuse, old: str, new: str, key: str, says: str
) -> None:
    assert old in base
    problem, *others = refuse(base.replace(old, new, 1))
    assert key in problem.key
    assert says in problem.message
    assert others == []


def test_an_item_takes_the_place_of_its_array(base: str, read: Read) -> None:
    text = base.replace("    from: orders\n", "    from: orders\n    explode: {line: items}\n", 1)
    text = text.replace("lower(note)", "concat(note, line.sku, size(items))")
    text = text.replace("sum(price)", "sum(line.price)")
    pipeline = read(text)
    clean = pipeline.silver["clean"]
    assert clean.explode == Explode("line", "items", "drop")
    types = clean.row(pipeline.sources["orders"].record)
    assert "items" not in types
    assert types["line"] == parse_type(ITEMS.removeprefix("array<").removesuffix(">"))
    assert "explode  line is each item of items; a record without items: no" in describe(pipeline)
    kept = text.replace("{line: items}", "{line: {array: items, empty: keep}}")
    assert read(kept).silver["clean"].explode == Explode("line", "items", "keep")
    digests = {read(each).definitions["silver/clean"] for each in (text, kept, base)}
    assert len(digests) == 3
    array = text.replace("note: concat", "items: size(items)\n      note: concat")
    assert str(read(array).silver["clean"].types["items"]) == "int"


@pytest.mark.parametrize(
    ("explode", "key", "says", "nearest"),
    [
        ("{line: itemz}", "line", "the schema has no column 'itemz'", "items"),
        ("{line: price}", "line", "'price' is a decimal(18,2), not an array", None),
        ("{line: items.sku}", "line", "'items' is an array<", None),
        ("{price: items}", "price", "the record has a column 'price'; give the item another", None),
        ("{Price: items}", "Price", "the record has a column 'price'; give the item another", None),
        ("{items: items}", "items", "the record has a column 'items'; give the item another", None),
        ("{line: items, other: items}", "other", "a table explodes one array, and 'line' is", None),
        ("{line: {empty: keep}}", "line", "the key 'array' is missing", None),
        ("{line: {array: items, empty: skip}}", "line.empty", "must be one of drop, keep", None),
        ("{window_start: items}", "", "has the name of a column of late side tables", None),
        ("{_line: items}", "_line", "starts with an underscore", "line"),
        ("items", "", "must be a map from names to values", None),
    ],
)
def test_what_cannot_be_exploded(
    base: str, refuse: Refuse, explode: str, key: str, says: str, nearest: str | None
) -> None:
    text = base.replace("    from: orders\n", f"    from: orders\n    explode: {explode}\n", 1)
    problem, *others = refuse(text)
    assert problem.key.endswith(f"explode.{key}" if key else problem.key)
    assert problem.key.startswith("silver.clean")
    assert says in problem.message
    assert problem.nearest == nearest
    assert others == []
