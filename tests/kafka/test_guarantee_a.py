"""Guarantee A over a broker: what tables hold depends on the topic, not on batches, jobs, restarts
or the time of a second reading."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.insight.ledger.by_id import by_id
from headgate.setup.broker.running import Broker
from tests.oracle import SourceRecord, Tables, compare, derive
from tests.support.broker import Sent, create_topic, place_of, produce
from tests.support.events import reading, readings
from tests.support.kafka_engine import KafkaEngine, records_of
from tests.support.readings import GOLD, GOLD_KEYS, declare_kafka, rules
from tests.support.rounds import IN_FULL
from tests.support.tables import differences, read

pytestmark = pytest.mark.spark

PARTITIONS = 4
ALL = 1_000_000
RECORDS = 1_000
# tests/spark/test_guarantee_a.py covers jobs per layer: they read bronze, whatever its source.
CASES = [(200, "fused", True)]
if IN_FULL:
    RECORDS = 6_000
    CASES = list(product((100, 5000, ALL), ("fused", "per_layer"), (True, False)))
FUTURE = reading("ahead", datetime(2199, 1, 1, tzinfo=UTC), level=1)


@dataclass(frozen=True)
class Topic:
    broker: Broker
    name: str
    records: list[SourceRecord]
    expected: Tables


def deal(values: list[bytes]) -> list[Sent]:
    """The values, dealt to partitions of uneven size; all copies of an id go to one partition. Some
    records are added: without a value, with an empty value, or with an event time in the future."""
    chance = random.Random(8)
    sent = []
    for value in values:
        id_, place = place_of(value, PARTITIONS)
        sent.append(Sent(value, key=id_, partition=place))
        if chance.random() < 0.02:
            extra = chance.choice([None, FUTURE, b""])
            sent.append(Sent(extra, partition=chance.randrange(PARTITIONS)))
    return sent


@pytest.fixture(scope="module")
def topic(broker: Broker) -> Topic:
    """The broker's clock sets the times of records, so the events are from a year that has
    passed."""
    values = [value.replace(b"2026-", b"2021-") for value in readings(RECORDS, seed=3)]
    name = create_topic(broker, PARTITIONS, message_timestamp_type="LogAppendTime")
    produce(broker, name, deal(values))
    records = records_of(broker, name)
    return Topic(broker, name, records, derive(records, rules(gold=GOLD)))


@pytest.fixture(scope="module")
def first(spark: SparkSession, topic: Topic, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The topic in one batch: what every other run must equal."""
    return run(spark, tmp_path_factory.mktemp("first"), topic, ALL).root


def run(
    spark: SparkSession,
    folder: Path,
    topic: Topic,
    limit: int,
    jobs: str = "fused",
    restart: bool = False,
) -> KafkaEngine:
    pipeline = declare_kafka(
        folder, topic.broker.servers, topic=topic.name, max_per_batch=limit, gold=GOLD
    )
    engine = KafkaEngine(spark, pipeline, folder / "root")
    batches = -(-len(topic.records) // limit)
    done = 0
    while engine.list_new():
        engine.ingest()
        done += 1
        if restart and done == -(-batches // 2):
            engine.start()
        if done % -(-batches // 3) == 0:
            catch_up(engine, jobs)
    catch_up(engine, jobs)
    engine.close()
    assert done >= batches
    return engine


def catch_up(engine: KafkaEngine, jobs: str) -> None:
    if jobs == "fused":
        engine.catch_up()
    else:
        engine.catch_up_per_layer()


def told_apart(one: Path, other: Path) -> dict[str, list[str]]:
    """How the tables of two roots differ, positions and stamps included."""
    keys: dict[str, tuple[str, ...]] = {"bronze/raw": ("partition", "offset")}
    keys["quarantine/raw"] = ("partition", "offset", "table")
    keys |= {f"silver/{name}": ("_partition", "_offset", "_item") for name in ("clean", "strong")}
    keys |= {f"late/{name}": ("_partition", "_offset", "_item", "window_start") for name in GOLD}
    keys |= {f"gold/{name}": GOLD_KEYS[name] for name in GOLD}
    unlike = {"updated_at", "about"}  # the write time, and a sketch
    found = {}
    for table, key in keys.items():
        expected, actual = (
            [{k: v for k, v in row.items() if k not in unlike} for row in read(root, table)]
            for root in (one, other)
        )
        found[table] = compare(expected, actual, key)
    return {table: lines for table, lines in found.items() if lines}


def test_the_topic_holds_every_outcome(topic: Topic) -> None:
    reasons = {row["reason"] for row in topic.expected.quarantine}
    assert {"unparsable", "future", "missing_id", "wrong_type"} <= reasons
    assert any(record.value is None for record in topic.records)
    assert all(topic.expected.late.values())
    assert topic.expected.counts["duplicate"] > 50
    assert topic.expected.counts["corrected"] > 3
    assert {record.partition for record in topic.records} == set(range(PARTITIONS))
    assert {row["final"] for rows in topic.expected.gold.values() for row in rows} == {True, False}


def test_in_one_batch(topic: Topic, first: Path) -> None:
    assert differences(first, topic.expected) == {}
    places = {(row["partition"], row["offset"]) for row in read(first, "bronze/raw")}
    assert places == {(record.partition, record.offset) for record in topic.records}


@pytest.mark.parametrize(("limit", "jobs", "restart"), CASES)
def test_tables_do_not_depend_on_batches_jobs_restarts_or_reading_again(
    spark: SparkSession,
    tmp_path: Path,
    topic: Topic,
    first: Path,
    limit: int,
    jobs: str,
    restart: bool,
) -> None:
    engine = run(spark, tmp_path, topic, limit, jobs, restart)
    assert differences(engine.root, topic.expected) == {}
    assert told_apart(first, engine.root) == {}
    proof = by_id(engine.layout, engine.pipeline)
    assert proof.findings == ()
    assert proof.rows == len(topic.records)
