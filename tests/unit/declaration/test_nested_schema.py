"""Declarations with nested types."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.declaration.errors import DeclarationProblem
from headgate.declaration.model import Pipeline
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
    assert f"items        {parse_type(ITEMS)}" in describe(pipeline)


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
