"""From which columns of which table the columns of a join are computed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headgate.declaration.graph import graph_of
from headgate.insight.lineage.datasets import Input, of_gold, outputs
from headgate.lake.storage.layout import Layout
from tests.support.joins import ROLLUP, declared

WITHIN, WHO = "within: 1 hour", "who: clicks.user"
CLICKS, PURCHASES = 0, 1


def test_each_column_names_its_table() -> None:
    changes = (WITHIN, f"{WITHIN}\n      where: purchases.amount > clicks.amount")
    who = WHO, "who: coalesce(clicks.user, purchases.buyer)\n      first: clicks.user"
    pipeline = declared(changes, ("on: [user]", "on: {user: buyer}"), who)
    found = of_gold(pipeline.gold["bought"], pipeline)
    assert found.of == {
        "event_time": (
            Input("_event_time", "TRANSFORMATION", CLICKS),
            Input("_event_time", "TRANSFORMATION", PURCHASES),
        ),
        "row_id": (),
        "who": (
            Input("buyer", "TRANSFORMATION", PURCHASES),
            Input("user", "TRANSFORMATION", CLICKS),
        ),
        "first": (Input("user", "IDENTITY", CLICKS),),
        "paid": (Input("amount", "IDENTITY", PURCHASES),),
    }
    assert found.rows == (
        Input("amount", "FILTER", CLICKS),
        Input("amount", "FILTER", PURCHASES),
        Input("buyer", "FILTER", PURCHASES),
        Input("user", "FILTER", CLICKS),
    )


@pytest.mark.parametrize(
    ("expression", "read"),
    [
        (
            "purchases is null",
            {(name, PURCHASES) for name in ("id", "kind", "user", "amount", "tags", "at", "buyer")},
        ),
        ("'clicks.user'", set()),
        ("exists(clicks.tags, tag -> tag = purchases.id)", {("tags", CLICKS), ("id", PURCHASES)}),
        ("upper(`clicks`.`user`)", {("user", CLICKS)}),
    ],
)
def test_what_an_expression_reads(expression: str, read: set[tuple[str, int]]) -> None:
    pipeline = declared((WHO, f'who: "{expression}"'))
    found = of_gold(pipeline.gold["bought"], pipeline).of["who"]
    assert {(each.column, each.place) for each in found} == read


OVER = """\
  spent:
    over:
      table: purchases
      range: 1 hour
      by: {who: purchases.buyer}
      measures: {paid: sum(purchases.amount) filter (where purchases.id > ''), rows: count(*)}
    columns: {who: who, mean: paid / rows, tags: purchases.tags}
    allowed_lateness: 20 seconds
"""


def test_a_column_over_a_measure_reads_what_the_measure_does() -> None:
    pipeline = declared(more=OVER)
    found = of_gold(pipeline.gold["spent"], pipeline)
    assert {name: {each.column for each in read} for name, read in found.of.items()} == {
        "event_time": {"_event_time"},
        "row_id": set(),
        "who": {"buyer"},
        "mean": {"amount", "id"},
        "tags": {"tags"},
    }
    assert found.rows == (Input("buyer", "FILTER"),)


def test_a_rollup_reads_the_rows_of_a_join() -> None:
    pipeline = declared(more=ROLLUP)
    found = of_gold(pipeline.gold["paid_per_day"], pipeline).of
    assert found["window_start"] == (Input("event_time", "TRANSFORMATION"),)
    assert found["paid"] == (Input("paid", "AGGREGATION"),)
    # A row of the struct `bought` has its time and its id.
    assert {each.column for each in found["last"]} == {"event_time", "row_id"}


def test_the_document_names_the_table_of_each_column(tmp_path: Path) -> None:
    pipeline = declared()
    layout = Layout.of(str(tmp_path), "shop")
    node = graph_of(pipeline)["gold/bought"]
    (output, *_) = outputs(pipeline, layout, node, None)
    assert output.facets is not None
    lineage: Any = output.facets["columnLineage"]

    def of(name: str) -> list[tuple[str, str]]:
        inputs = lineage.fields[name].inputFields
        return [(each.name.removeprefix("shop/"), each.field) for each in inputs]

    def tables(name: str) -> list[str]:
        return [table.rpartition("shop/")[2] for table, _ in of(name)]

    assert tables("who") == ["silver/clicks"]
    assert tables("paid") == ["silver/purchases"]
    assert tables("event_time") == ["silver/clicks", "silver/purchases"]
    assert [each.field for each in lineage.dataset] == ["user", "user"]
