"""A pipeline of orders whose items are exploded, written twice: as YAML for the engine and as rules
for the oracle."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import Proof, by_id
from tests.oracle import Explode, GoldRules, Measure, RowRule, Rules, SilverRules, derive
from tests.oracle.rules import Happening
from tests.support.engine import Engine
from tests.support.readings import NOON
from tests.support.replay_project import ReplayProject
from tests.support.tables import Row, differences

ITEM = "struct<sku: string, price: decimal(10,2), pieces: int>"
TABLES = """
silver:
  clean:
    from: raw
    explode: {line: items}
    columns:
      revenue: cast(line.price * line.pieces as decimal(12,2))
      of: size(items)
    where: coalesce(line.sku, '') <> 'skip'
    drop: [order]
    expectations: clean
  tags:
    from: raw
    explode: {tag: {array: order.tags, empty: keep}}
    columns: {tag: upper(tag)}
    drop: [items, order]
gold:
  per_minute:
    from: clean
    window: {tumbling: 1 minute}
    by: {sku: line.sku}
    measures:
      events: count(*)
      revenue: sum(revenue)
      opening: first(line.price)
      dearest: max_by(line.pieces, line.price)
      some: collect_list(line.price, 3)
    allowed_lateness: 0 s
  hourly:
    from: tags
    window: {tumbling: 1 hour}
    by: [tag]
    measures: {events: count(*), last_id: last(id)}
    allowed_lateness: 0 s
"""
SCHEMA = f"""
        site: string
        items: "array<{ITEM}>"
        order: "struct<tags: array<string>>"
"""
RULES = """
expectations:
  - {id: priced, expect: line.price > 0}
  - {id: cheap, expect: line.price < 900, action: warn}
"""
KEYS = {"per_minute": ("window_start", "sku"), "hourly": ("window_start", "tag")}


def _part(name: str) -> Any:
    return lambda row: None if row["line"] is None else row["line"][name]


def _revenue(row: Row) -> Decimal | None:
    price, pieces = _part("price")(row), _part("pieces")(row)
    return None if price is None or pieces is None else price * pieces


def _count(row: Row) -> int:
    """Spark's size of null is -1."""
    return -1 if row["items"] is None else len(row["items"])


def _priced(row: Row) -> bool | None:
    price = _part("price")(row)
    return None if price is None else price > 0


def _cheap(row: Row) -> bool | None:
    price = _part("price")(row)
    return None if price is None else price < 900


ORACLE = Rules(
    event_id=("id",),
    time_column="at",
    time_format="iso",
    schema={
        "id": "string",
        "at": "timestamp",
        "site": "string",
        "items": f"array<{ITEM}>",
        "order": "struct<tags: array<string>>",
    },
    within=timedelta(minutes=10),
    silver={
        "clean": SilverRules(
            explode=Explode("line", "items"),
            columns={"revenue": _revenue, "of": _count},
            drop=("order",),
            where=lambda row: _part("sku")(row) != "skip",
            suite={"priced": RowRule(_priced), "cheap": RowRule(_cheap, rejects=False)},
        ),
        "tags": SilverRules(
            explode=Explode("tag", "order.tags", keeps_empty=True),
            columns={"tag": lambda row: row["tag"] and row["tag"].upper()},
            drop=("items", "order"),
        ),
    },
    gold={
        "per_minute": GoldRules(
            "clean",
            timedelta(minutes=1),
            timedelta(minutes=1),
            by={"sku": _part("sku")},
            measures={
                "events": Measure("count", None, "bigint"),
                "revenue": Measure("sum", lambda row: row["revenue"], "decimal(22,2)"),
                "opening": Measure("first", _part("price"), "decimal(10,2)"),
                "dearest": Measure("max_by", _part("pieces"), "int", order=_part("price")),
                "some": Measure("collect_list", _part("price"), "array<decimal(10,2)>", most=3),
            },
        ),
        "hourly": GoldRules(
            "tags",
            timedelta(hours=1),
            timedelta(hours=1),
            by={"tag": lambda row: row["tag"]},
            measures={
                "events": Measure("count", None, "bigint"),
                "last_id": Measure("last", lambda row: row["id"], "string"),
            },
        ),
    },
)


class ExplodedProject(ReplayProject):
    def __init__(self, folder: Path, spark: SparkSession, tables: str = TABLES) -> None:
        super().__init__(folder, spark, tables)
        text = self.declaration.read_text()
        flat = "      schema: {id: string, site: string, level: int, at: timestamp}\n"
        assert flat in text
        named = "        id: string\n        at: timestamp"
        self.declaration.write_text(text.replace(flat, f"      schema:\n{named}{SCHEMA}"))
        self.write_rules(RULES)

    def compare(self, happenings: Sequence[Happening] = (), rules: Rules = ORACLE) -> None:
        """Compare all tables with the oracle's."""
        expected = derive(self.records(), rules, drains=happenings)
        found = differences(self.root, expected, KEYS)
        assert found == {}, found

    def records(self) -> Any:
        return self._landing.records()

    def prove(self, engine: Engine) -> Proof:
        assert balance(engine.layout, engine.pipeline).differences == ()
        proof = by_id(engine.layout, engine.pipeline)
        assert proof.findings == ()
        return proof


def order(name: str, *prices: object, seconds: float = 0, **fields: object) -> Row:
    """An order with an item for each price; a price of None is a null item."""
    items = [
        None if price is None else {"sku": f"s{n % 3}", "price": str(price), "pieces": n + 1}
        for n, price in enumerate(prices)
    ]
    at = (NOON + timedelta(seconds=seconds)).isoformat()
    return {"id": name, "site": "a", "at": at, "items": items, **fields}


def orders(count: int, seed: int) -> Iterator[Row]:
    """Orders with few and with many items, null items, without items; copies of earlier orders,
    with the same and with other bytes; late and invalid ones."""
    chance = random.Random(seed)
    sent: list[Row] = []
    for number in range(count):
        if sent and chance.random() < 0.2:
            copy = dict(chance.choice(sent[-8:]))
            if chance.random() < 0.6:
                copy["items"] = _items(chance)
            yield copy
            continue
        seconds = number * 9 - (chance.randrange(300) if chance.random() < 0.15 else 0)
        tags = chance.choice([None, [], ["a"], ["b", None, "c"], ["a", "a"]])
        made = order(f"o{number}", seconds=seconds, order={"tags": tags})
        made["items"] = chance.choice([None, [], *[_items(chance)] * 6])
        if chance.random() < 0.05:
            made["items"] = [{"sku": "a", "price": "much"}]
        if chance.random() < 0.05:
            made["order"] = None
        sent.append(made)
        yield made


def _items(chance: random.Random) -> list[Any]:
    return [
        None
        if chance.random() < 0.1
        else {
            "sku": chance.choice(["tea", "cup", "skip", None]),
            "price": chance.choice(["-1.00", "2.50", "950.00", "7", None]),
            "pieces": chance.randrange(4),
        }
        for _ in range(chance.choice([1, 2, 3, 12]))
    ]
