"""From which columns the columns of a declaration are computed."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.insight.lineage.datasets import Input, of_bronze, of_gold, of_silver

DECLARATION = """
pipeline: sales
sources:
  orders:
    files: {path: landing, format: json}
    record:
      event_id: [id]
      event_time: {column: at}
      duplicates: {within: 10 minutes}
      schema:
        id: string
        shop: struct<city string, tags array<string>>
        price: decimal(12,2)
        pieces: int
        at: timestamp
silver:
  clean:
    from: orders
    columns:
      city: lower(shop.city)
      amount: price * pieces
      tagged: exists(shop.tags, tag -> tag = 'new')
    where: amount > 0 and id is not null
    drop: [shop]
gold:
  per_hour:
    from: clean
    window: {tumbling: 1 hour}
    where: tagged
    by: {city: city, large: pieces > 10}
    measures:
      orders: count(*)
      total: sum(amount)
      dearest: max(price) filter (where tagged and price > 1)
      most: max_by(city, pieces)
      top: top_n(city, pieces, 3) filter (where price > 1)
    columns: {mean: total / orders, place: upper(city)}
    allowed_lateness: 1 minute
"""


@pytest.fixture
def declared(tmp_path: Path) -> Pipeline:
    (tmp_path / "landing").mkdir()
    file = tmp_path / "sales.yml"
    file.write_text(DECLARATION)
    return load(file)


def test_of_bronze(declared: Pipeline) -> None:
    found = of_bronze(declared.sources["orders"].record)
    assert found.of["price"] == (Input("price", "IDENTITY"),)
    assert found.rows == ()


def test_of_silver(declared: Pipeline) -> None:
    found = of_silver(declared.silver["clean"], declared.sources["orders"].record)
    assert found.of == {
        "id": (Input("id", "IDENTITY"),),
        "price": (Input("price", "IDENTITY"),),
        "pieces": (Input("pieces", "IDENTITY"),),
        "at": (Input("at", "IDENTITY"),),
        "city": (Input("shop", "TRANSFORMATION"),),
        "amount": (Input("pieces", "TRANSFORMATION"), Input("price", "TRANSFORMATION")),
        "tagged": (Input("shop", "TRANSFORMATION"),),
        "_event_time": (Input("at", "TRANSFORMATION"),),
    }
    assert found.rows == tuple(Input(name, "FILTER") for name in ("id", "pieces", "price"))


def test_of_items(tmp_path: Path) -> None:
    (tmp_path / "landing").mkdir()
    text = DECLARATION.replace(
        "    columns:\n      city",
        "    explode: {label: shop.tags}\n    columns:\n      sign: upper(label)\n      city",
        1,
    )
    (tmp_path / "sales.yml").write_text(text)
    declared = load(tmp_path / "sales.yml")
    found = of_silver(declared.silver["clean"], declared.sources["orders"].record)
    assert found.of["label"] == found.of["sign"] == (Input("shop", "TRANSFORMATION"),)
    assert Input("shop", "FILTER") in found.rows


def test_of_gold(declared: Pipeline) -> None:
    found = of_gold(declared.gold["per_hour"], declared)
    assert found.of == {
        "window_start": (Input("_event_time", "TRANSFORMATION"),),
        "window_end": (Input("_event_time", "TRANSFORMATION"),),
        "city": (Input("city", "IDENTITY"),),
        "large": (Input("pieces", "TRANSFORMATION"),),
        "orders": (),
        "total": (Input("amount", "AGGREGATION"),),
        "dearest": (
            Input("price", "AGGREGATION"),
            Input("price", "FILTER"),
            Input("tagged", "FILTER"),
        ),
        "most": (Input("city", "AGGREGATION"), Input("pieces", "AGGREGATION")),
        "top": (
            Input("city", "AGGREGATION"),
            Input("pieces", "AGGREGATION"),
            Input("price", "FILTER"),
        ),
        "mean": (Input("amount", "AGGREGATION"),),
        "place": (Input("city", "TRANSFORMATION"),),
    }
    assert found.rows == (
        Input("city", "GROUP_BY"),
        Input("pieces", "GROUP_BY"),
        Input("tagged", "FILTER"),
    )
