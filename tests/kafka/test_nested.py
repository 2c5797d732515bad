"""Nested records of topics: to tables, to other topics, and through an upgrade that adds fields."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.driver.task import RebuildRequest
from headgate.history.savepoints.deployment import deployment_of
from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from headgate.setup.broker.running import Broker
from tests.support.broker import consume_all, create_topic, expire, produce
from tests.support.kafka_engine import KafkaEngine
from tests.support.landing import ARRIVED
from tests.support.readings import NOON
from tests.support.tables import read, states

pytestmark = pytest.mark.spark

DECLARATION = """
pipeline: readings
sources:
  raw:
    kafka: {{servers: "{servers}", topic: {topic}}}
    record:
      event_id: [id]
      event_time: {{column: at}}
      duplicates: {{within: 10 minutes}}
      schema:
        id: string
        at: timestamp
        customer: "struct<name: string, at: struct<lat: double>>"
        lines: "array<struct<sku: string, price: decimal(9,2), sold: timestamp>>"
        tags: "map<string, struct<n: int>>"
silver:
  clean:
    from: raw
    columns: {{name: customer.name, skus: lines.sku}}
gold:
  per_minute:
    from: clean
    window: {{tumbling: 1 minute}}
    by: [name]
    measures: {{events: count(*), bought: sum(size(lines))}}
    allowed_lateness: 0 s
publish:
  finals: {{from: gold.per_minute, kafka: {{servers: "{servers}", topic: {finals}}}}}
  late: {{from: late.per_minute, kafka: {{servers: "{servers}", topic: {late}}}}}
"""
TABLES = ("bronze/raw", "silver/clean", "gold/per_minute")
SOLD = "2026-03-01T12:00:00+01:00"


def event(id_: str, minute: int) -> bytes:
    """An event that also has values for the fields that are added later."""
    fields = {
        "customer": {"name": "Ada", "at": {"lat": 1.5, "lon": 2.5}, "tier": "gold"},
        "lines": [{"sku": "a", "price": "1.50", "sold": SOLD, "vat": 1}, None],
        "tags": {"k": {"n": 1, "m": True}},
    }
    at = (NOON + timedelta(minutes=minute)).isoformat()
    return json.dumps({"id": id_, "at": at, **fields}).encode()


class Topic:
    def __init__(self, spark: SparkSession, folder: Path, broker: Broker) -> None:
        self.broker = broker
        self.topics = {name: create_topic(broker) for name in ("topic", "finals", "late")}
        self.file = folder / "readings.yml"
        self.file.write_text(DECLARATION.format(servers=broker.servers, **self.topics))
        self.spark, self.root = spark, folder / "root"

    def send(self, *events: bytes) -> None:
        produce(self.broker, self.topics["topic"], events)

    def pipeline(self) -> Pipeline:
        return load(self.file)

    def run(self, anew: RebuildRequest | None = None) -> KafkaEngine:
        request = anew or RebuildRequest()
        engine = KafkaEngine(self.spark, self.pipeline(), self.root, now=ARRIVED, anew=request)
        engine.read_all()
        for stage in engine.runtime.publications:
            stage.catch_up(engine.clock())
        assert balance(engine.layout, engine.pipeline).differences == ()
        assert by_id(engine.layout, engine.pipeline).findings == ()
        engine.close()
        return engine

    def actions(self, engine: KafkaEngine) -> set[str]:
        return {plan.action for plan in deployment_of(engine.layout, self.pipeline()).tables}

    def messages(self, name: str) -> list[dict[str, Any]]:
        found = consume_all(self.broker, self.topics[name])
        return [json.loads(record.value or b"") for record in found]


@pytest.fixture
def topic(spark: SparkSession, tmp_path: Path, broker: Broker) -> Topic:
    return Topic(spark, tmp_path, broker)


def test_nested_records_are_read_and_sent_and_get_fields(topic: Topic) -> None:
    """The topic has lost the records that were read before the upgrade. They are not needed
    again."""
    topic.send(event("a", 0))
    topic.run()
    topic.send(event("b", 5), event("late", 0))
    engine = topic.run()
    (gold,) = topic.messages("finals")
    assert (gold["name"], gold["events"], gold["bought"]) == ("Ada", 1, 2)
    (late,) = topic.messages("late")
    assert (late["customer"], late["tags"]) == (
        {"name": "Ada", "at": {"lat": 1.5}},
        {"k": {"n": 1}},
    )
    sold = "2026-03-01T11:00:00.000000Z"
    assert (late["lines"], late["skus"]) == (
        [{"sku": "a", "price": 1.5, "sold": sold}, None],
        ["a", None],
    )
    expire(topic.broker, topic.topics["topic"], {0: 3})
    declared = topic.file.read_text()
    topic.file.write_text(declared.replace("tags:", "note: string\n        tags:"))
    assert "refuse" in topic.actions(engine)
    wider = declared.replace("lat: double>>", "lat: double, lon: double>, tier: string>")
    wider = wider.replace("n: int>", "n: int, m: boolean>")
    wider = wider.replace("sold: timestamp>", "sold: timestamp, vat: int>")
    topic.file.write_text(wider)
    assert topic.actions(engine) == {"extend"}
    topic.send(event("c", 6), event("late too", 0))
    topic.run(RebuildRequest(changed=True))
    assert {
        states(topic.root, path)[-1]["generation"] for path in ("bronze/raw", "gold/per_minute")
    } == {0}
    rows = {row["_event_id"]: row for row in read(topic.root, "silver/clean")}
    added = {
        name: (
            row["customer"]["at"]["lon"],
            row["customer"]["tier"],
            row["lines"][0]["vat"],
            row["tags"][0][1]["m"],
        )
        for name, row in rows.items()
    }
    old, new = (None,) * 4, (2.5, "gold", 1, True)
    assert added == {"a": old, "b": old, "late": old, "c": new, "late too": new}
    assert [message["customer"].get("tier") for message in topic.messages("late")] == [None, "gold"]
    assert len(topic.messages("finals")) == 2
