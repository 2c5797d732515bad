"""Partitions that become idle, come back or are added: the watermark advances without them, and
their records never change a final window."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Unpack

import pytest
from pyspark.sql import SparkSession

from headgate.driver.runtime import PipelineRuntime
from headgate.insight.ledger.by_id import by_id
from headgate.lake.storage.layout import Layout
from headgate.setup.broker.running import Broker
from tests.oracle import derive
from tests.support.broker import Sent, add_partitions, create_topic, produce
from tests.support.events import reading
from tests.support.kafka_engine import KafkaEngine, records_of
from tests.support.landing import ARRIVED
from tests.support.readings import GOLD_KEYS, NOON, KafkaKeys, declare_kafka, rules
from tests.support.rounds import in_full
from tests.support.tables import Row, differences, read, state

pytestmark = pytest.mark.spark

GOLD = ("sliding", "bands")
IDLE = 60  # seconds
TICK = 5  # seconds between batches, less than ``IDLE``


@dataclass
class Sensors:
    """Partitions that deliver one reading at a time, each reading with a number of its own."""

    broker: Broker
    topic: str
    count: int = 0

    def send(self, *minutes: tuple[int, float]) -> None:
        """(partition, event time in minutes since NOON) of each reading."""
        records = []
        for partition, minute in minutes:
            self.count += 1
            at = NOON + timedelta(minutes=minute)
            value = reading(f"r{self.count}", at, level=7, value=self.count, weight=1, ok=True)
            records.append(Sent(value, partition=partition, at=ARRIVED))
        produce(self.broker, self.topic, records)


@pytest.fixture
def sensors(broker: Broker) -> Sensors:
    return Sensors(broker, create_topic(broker, 2))


def engine_of(
    spark: SparkSession, folder: Path, sensors: Sensors, **more: Unpack[KafkaKeys]
) -> KafkaEngine:
    keys: KafkaKeys = {"topic": sensors.topic, "idle_after": f"{IDLE} seconds", **more}
    pipeline = declare_kafka(folder, sensors.broker.servers, gold=GOLD, **keys)
    return KafkaEngine(spark, pipeline, folder / "root", now=ARRIVED + timedelta(minutes=1))


def closing(engine: KafkaEngine) -> float | None:
    """The source's watermark, in minutes since NOON."""
    clock = state(engine.root, "bronze/raw")["watermark"]
    if clock is None:
        return None
    since = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=clock) - NOON
    return since / timedelta(minutes=1)


def final_rows(root: Path) -> dict[tuple[Any, ...], Row]:
    return {
        (name, *(row[key] for key in GOLD_KEYS[name])): row
        for name in GOLD
        for row in read(root, f"gold/{name}")
        if row["final"]
    }


def everything(root: Path) -> dict[str, list[str]]:
    """The sorted rows of silver, gold and side tables, without the times at which they were
    written."""
    tables = [f"silver/{name}" for name in ("clean", "strong")]
    tables += ["quarantine/raw", *(f"{kind}/{name}" for kind in ("late", "gold") for name in GOLD)]
    found = {}
    for table in tables:
        rows = [{k: v for k, v in row.items() if k != "updated_at"} for row in read(root, table)]
        found[table] = sorted(map(repr, rows))
    return found


def holds(before: Mapping[tuple[Any, ...], Row], root: Path) -> None:
    """Every row that was final before is still the same row, with the same revision."""
    now = final_rows(root)
    assert before
    assert {key: now.get(key) for key in before} == dict(before)


@in_full
def test_a_partition_falls_silent_and_comes_back(
    spark: SparkSession, tmp_path: Path, sensors: Sensors
) -> None:
    engine = engine_of(spark, tmp_path, sensors)
    sensors.send(*((p, minute / 2) for minute in range(8) for p in (0, 1)))
    engine.read_all()
    assert closing(engine) == 3.5
    minute, clocks = 4.0, {}
    for tick in range(IDLE // TICK + 2):  # only partition 0
        engine.wait(TICK)
        sensors.send((0, minute + tick))
        assert engine.list_new()
        if tick in (0, 10, 11, 13):
            engine.ingest()
            clocks[tick] = closing(engine)
        if tick in (0, 10):
            engine.catch_up()
    # The last records of both partitions came one tick before the first record of this loop.
    waited = IDLE // TICK - 1
    assert clocks == {t: 3.5 if t < waited else minute + t for t in (0, 10, 11, 13)}
    engine.catch_up()
    before, gone_on = final_rows(engine.root), closing(engine)
    assert gone_on is not None
    assert gone_on > 10

    sensors.send((1, 4), (1, 5.5), (1, gone_on - 0.5), (1, gone_on + 2))
    add_partitions(sensors.broker, sensors.topic, 3)
    sensors.send((2, 3.9), (2, gone_on - 0.1), (0, gone_on + 1))
    engine.wait(TICK)
    engine.read_all()
    assert closing(engine) == gone_on  # the new partition is behind, and the watermark waits for it
    at_least = NOON + timedelta(minutes=gone_on)
    came = [row for row in read(engine.root, "bronze/raw") if row["partition"] in (1, 2)]
    behind = [
        r for r in came if r["event_time"] < at_least and (r["partition"], r["offset"]) > (1, 7)
    ]
    assert len(behind) == 5
    assert all(row["clock"] >= at_least for row in behind)
    holds(before, engine.root)
    assert any(row["_partition"] in (1, 2) for row in read(engine.root, "late/bands"))

    # The watermark waits for partitions 1 and 2 again: it follows the slowest partition.
    sensors.send((0, gone_on + 30), (1, gone_on + 3), (2, gone_on + 4))
    engine.wait(TICK)
    engine.read_all()
    assert closing(engine) == gone_on + 3
    holds(before, engine.root)
    assert by_id(engine.layout, engine.pipeline).findings == ()
    engine.close()
    built_again(spark, tmp_path / "again", engine)


def built_again(spark: SparkSession, folder: Path, engine: KafkaEngine) -> None:
    """Guarantee B: silver and gold, built from the same bronze in one step, equal those of many
    steps."""
    other = folder / "readings"
    shutil.copytree(engine.root / "readings/bronze", other / "bronze")
    layout = Layout.of(str(folder), engine.pipeline.name)
    again = PipelineRuntime(spark, engine.pipeline, layout, ("silver", "gold"))
    again.open(engine.epoch + 1, engine.clock())
    again.catch_up(engine.clock())
    assert everything(folder) == everything(engine.root)


def test_a_backlog_after_an_outage_is_folded(
    spark: SparkSession, tmp_path: Path, sensors: Sensors
) -> None:
    """While partition 1 is being read, other records keep coming: it is slow, not idle."""
    engine = engine_of(spark, tmp_path, sensors, max_per_batch=8)
    sensors.send(*((p, k / 10) for k in range(5) for p in (0, 1)))
    engine.read_all()
    engine.wait(3600)
    sensors.send(*((1, 1 + k / 10) for k in range(40)), *((0, 1 + k) for k in range(10)))
    minute = 11.0
    for tick in range(2 * IDLE // TICK):
        engine.wait(TICK)
        sensors.send((0, minute + tick))
        assert engine.list_new()
        if tick % 6 == 0:
            engine.ingest()
        if tick == IDLE // TICK:
            engine.start()
    unread = engine.source.backlog().partitions
    assert unread[f"{sensors.topic}/1"].records > 0
    engine.read_all(catch_up_every=4)
    expected = derive(
        records_of(sensors.broker, sensors.topic), rules(gold=GOLD), partitions=range(2)
    )
    assert expected.late == {"sliding": [], "bands": []}
    assert differences(engine.root, expected) == {}
    engine.close()
