"""A pipeline over records with nested fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.support.readings import NOON
from tests.support.replay_project import ReplayProject
from tests.support.tables import Row

ITEM = "struct<sku: string, price: decimal(10,2), sold: timestamp, tags: map<string, int>>"
TABLES = """
silver:
  clean:
    from: raw
    columns:
      city: address.city
      place: address.at
      total: >-
        aggregate(items, cast(0 as decimal(10,2)),
          (sum, item) -> cast(sum + coalesce(item.price, 0) as decimal(10,2)))
    where: not coalesce(exists(items, item -> item.sku = 'skip'), false)
    expectations: clean
  all: {from: raw}
gold:
  per_minute:
    from: clean
    window: {tumbling: 1 minute}
    by: [city]
    measures:
      events: count(*)
      total: sum(total)
      items: sum(size(items))
      places: top_n(address, total, 3)
    allowed_lateness: 0 s
"""
SCHEMA = f"""
        address: "struct<city: string, at: struct<lat: double, lon: double>>"
        items: "array<{ITEM}>"
        counts: "map<string, array<int>>"
        parts: "map<string, struct<n: int>>"
"""
RULES = """
expectations:
  - {id: named, expect: expect_column_values_to_not_be_null, column: address}
  - {id: cheap, expect: "not exists(items, item -> item.price > 100)"}
"""


class NestedProject(ReplayProject):
    def __init__(self, folder: Path, spark: SparkSession) -> None:
        super().__init__(folder, spark, TABLES)
        text = self.declaration.read_text()
        flat = "      schema: {id: string, site: string, level: int, at: timestamp}\n"
        assert flat in text
        named = "        id: string\n        at: timestamp"
        self.declaration.write_text(text.replace(flat, f"      schema:\n{named}{SCHEMA}"))
        self.write_rules(RULES)


def event(name: str, minute: int = 0, **fields: Any) -> Row:
    at = NOON.replace(minute=30 + minute).isoformat()
    address = {"city": "Oslo", "at": {"lat": 1.5, "elevation": 3}, "street": "x"}
    return {"id": name, "at": at, "address": address, "items": [], **fields}
