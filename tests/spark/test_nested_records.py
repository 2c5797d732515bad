"""Records with nested fields, from their bytes to gold, late rows, quarantine and back."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.insight.querying.sql import select
from tests.support.nested_project import NestedProject, event

pytestmark = pytest.mark.spark

SOLD = "2026-03-01T12:00:00+01:00"


@pytest.fixture
def project(tmp_path: Path, spark: SparkSession) -> NestedProject:
    return NestedProject(tmp_path, spark)


def test_values_arrive_as_their_types_say(project: NestedProject) -> None:
    item = {"sku": "a", "price": "1.505", "sold": SOLD, "tags": {"b": 1, "a": None}}
    project.land(
        [
            event("full", items=[item, None, {"price": 2}], counts={"k": [1, None], "n": None}),
            event("empty", address={}, counts={}),
            event("null", address=None, items=None),
            event("skipped", items=[{"sku": "skip"}]),
        ]
    )
    engine = project.engine().run_all()
    rows = {row["_event_id"]: row for row in project.read("silver/all")}
    assert rows["full"]["address"] == {"city": "Oslo", "at": {"lat": 1.5, "lon": None}}
    assert rows["full"]["items"] == [
        {
            "sku": "a",
            "price": Decimal("1.51"),
            "sold": datetime(2026, 3, 1, 11, tzinfo=UTC),
            "tags": [("b", 1), ("a", None)],
        },
        None,
        {"sku": None, "price": Decimal("2.00"), "sold": None, "tags": None},
    ]
    assert rows["full"]["counts"] == [("k", [1, None]), ("n", None)]
    assert (rows["empty"]["address"], rows["empty"]["counts"]) == ({"city": None, "at": None}, [])
    assert (rows["null"]["address"], rows["null"]["items"]) == (None, None)
    assert project.ids("silver/clean") == ["empty", "full"]
    assert project.read("quarantine/raw") == []
    assert project.ids("rejected/clean") == ["null"]
    sql = "SELECT city, events, total, items FROM per_minute ORDER BY city"
    assert select(engine.pipeline, engine.layout, sql)[1] == [
        ("Oslo", 1, Decimal("3.51"), 3),
        (None, 1, Decimal("0.00"), 0),
    ]
    project.check(engine)


WRONG = {
    '{"items": [{"sku": "a"}, null, {"price": "x"}]}': ("items", "items[2].price"),
    '{"items": [{"tags": {"k": 1.5}}]}': ("items", "items[0].tags['k']"),
    '{"items": [{"sold": "yesterday"}]}': ("items", "items[0].sold"),
    '{"items": {"sku": "a"}}': ("items", "items"),
    '{"items": [[]]}': ("items", "items[0]"),
    '{"address": {"at": {"lat": "1.5"}}}': ("address", "address.at.lat"),
    '{"address": "Oslo"}': ("address", "address"),
    '{"address": []}': ("address", "address"),
    '{"counts": {"k": [1, 2147483648]}}': ("counts", "counts['k'][1]"),
    '{"counts": [1]}': ("counts", "counts"),
}


def test_a_value_of_another_type_is_named_with_its_path(project: NestedProject) -> None:
    names = {f"e{number}": fields for number, fields in enumerate(WRONG)}
    project.land(event(name, **json.loads(fields)) for name, fields in names.items())
    engine = project.engine().run_all()
    for row in project.read("quarantine/raw"):
        column, path = WRONG[names[row["event_id"]]]
        assert (row["reason"], row["column"]) == ("wrong_type", column)
        assert row["detail"].startswith(f"{path} is not "), row["detail"]
    assert sorted(project.ids("quarantine/raw")) == sorted(names)
    project.check(engine)


def test_a_corrected_nested_value_comes_back(project: NestedProject) -> None:
    project.land([event("a", items=[{"price": "x"}]), event("b", items=[{"price": 101}])])
    engine = project.engine().run_all()
    assert project.ids("silver/clean") == []
    found = project.ask(engine, "replace(replace(value, '\"x\"', '7'), '101', '8')")
    engine.take_in()
    assert found
    assert {row["_event_id"]: row["total"] for row in project.read("silver/clean")} == {
        "a": Decimal("7.00"),
        "b": Decimal("8.00"),
    }
    project.check(engine)


def test_a_late_row_keeps_its_nested_values(project: NestedProject) -> None:
    engine = project.engine()
    for events in ([event("first", 9)], [event("late", items=[{"sku": "a", "price": 1}])]):
        project.land(events)
        engine.run_all()
    (row,) = project.read("late/per_minute")
    assert (row["_event_id"], row["items"][0]["price"]) == ("late", Decimal("1.00"))
    project.check(engine)


def test_tables_go_back_to_a_savepoint_with_their_nested_values(project: NestedProject) -> None:
    engine = project.engine()
    project.land([event("a", items=[{"sku": "a"}])])
    engine.run_all()
    taken, before = engine.savepoint(), project.read("silver/all")
    project.land([event("b", 1)])
    engine.run_all()
    engine.restore(taken)
    assert project.read("silver/all") == before
    engine.start()
    engine.catch_up()
    assert project.ids("silver/all") == ["a", "b"]
