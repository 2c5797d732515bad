"""Corrected copies of refused records stay in their partition and keep their key and headers."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.history.replay import requests
from headgate.history.replay.corrections import (
    as_refused,
    corrected_copies,
    exported_records,
    patched_records,
)
from headgate.history.replay.outcomes import replay_outcomes
from headgate.history.replay.refused import RefusedRecords, RefusedSelection
from headgate.history.replay.requests import ReplayDocument
from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from headgate.setup.broker.running import Broker
from tests.support.broker import Sent, create_topic, produce
from tests.support.declared import source_of
from tests.support.events import reading
from tests.support.kafka_engine import KafkaEngine
from tests.support.readings import NOON
from tests.support.rounds import in_full
from tests.support.tables import read

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
      schema: {{id: string, level: int, at: timestamp}}
silver:
  clean: {{from: raw, expectations: clean}}
gold:
  per_minute:
    from: clean
    window: {{tumbling: 1 minute}}
    measures: {{events: count(*)}}
    allowed_lateness: 0 s
"""
TIME = "headgate.corrects_time"
HEADERS = (("a", b"\xff"), ("headgate.corrects", b"no position"), ("empty", None), (TIME, b"x"))
RECORDS = (
    Sent(reading("same", NOON, level=20), partition=0),
    Sent(reading("same", NOON, level="x"), key=b"\xff\x00", partition=1, headers=HEADERS),
    Sent(reading("same", NOON, level=1), key=b"k", partition=2),
    Sent(None, key=b"tombstone", partition=2),
)


@in_full
def test_partitions_are_logs_of_their_own(
    spark: SparkSession, tmp_path: Path, broker: Broker
) -> None:
    topic = create_topic(broker, 3)
    produce(broker, topic, RECORDS)
    file = tmp_path / "readings.yml"
    file.write_text(DECLARATION.format(servers=broker.servers, topic=topic))
    (tmp_path / "expectations").mkdir()
    rules = "expectations: [{id: low, expect: level >= 10}]"
    (tmp_path / "expectations" / "clean.yml").write_text(rules)
    engine = KafkaEngine(spark, load(file), tmp_path / "root")
    engine.read_all()
    records = RefusedRecords(engine.layout, engine.pipeline, source_of(engine.pipeline))
    refused = as_refused(records.rows(RefusedSelection()), lambda each: each.value or b"")
    assert [each["value"] for each in exported_records(refused)][-1] == ""
    corrected = patched_records(refused, "json_merge_patch(value, '{\"level\": 50}')")
    now = datetime.now(UTC)
    wanted = corrected_copies(records, corrected, now)
    found = replay_outcomes(spark, engine.layout, engine.pipeline, records, corrected, wanted)
    assert [each.kind for each in found] == ["silver", "silver", "invalid"]
    good = [each.corrected for each in found if each.passes]
    document = ReplayDocument("raw", 0, 0, len(good), "a test")
    copies = corrected_copies(records, good, now).rows
    requests.request_replay(engine.layout, "r", document, copies, now)
    engine.take_in()
    produce(broker, topic, [Sent(reading("same", NOON, level=70), partition=p) for p in range(3)])
    engine.read_all()
    engine.close()
    levels = {row["_partition"]: row["level"] for row in read(engine.root, "silver/clean")}
    assert levels == {0: 20, -2: 50, -3: 50}
    kept = {
        row["partition"]: (row["key"], [(h["key"], h["value"]) for h in row["headers"]])
        for row in read(engine.root, "bronze/raw")
        if row["partition"] < 0
    }
    noon = int(NOON.timestamp()) * 10**6
    assert kept == {
        -2: (b"\xff\x00", [HEADERS[0], HEADERS[2], ("headgate.corrects", b"1:0"), (TIME, b"")]),
        -3: (b"k", [("headgate.corrects", b"2:0"), (TIME, str(noon).encode())]),
    }
    assert balance(engine.layout, engine.pipeline).differences == ()
    assert by_id(engine.layout, engine.pipeline).findings == ()
