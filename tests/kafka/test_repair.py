"""Damage of a pipeline that reads a topic: the end of bronze is read again if the topic still has
the records."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.errors import HeadgateError
from headgate.flow.sources.kafka.cluster import Cluster
from headgate.flow.sources.kafka.losses import gone_from
from headgate.history.repair.apply import apply, highest_epoch
from headgate.history.repair.examine import examine
from headgate.history.repair.plan import Plan
from headgate.insight.ledger.by_id import by_id
from headgate.lake.storage.layout import Layout
from headgate.setup.broker.running import Broker
from tests.oracle import derive
from tests.support.broker import Sent, create_topic, expire, place_of, produce
from tests.support.damage import harm
from tests.support.declared import kafka_of
from tests.support.events import readings
from tests.support.kafka_engine import KafkaEngine, records_of
from tests.support.readings import declare_kafka, rules
from tests.support.tables import differences

pytestmark = pytest.mark.spark

GOLD = ("sliding",)


@dataclass(frozen=True)
class Prepared:
    folder: Path
    broker: Broker
    topic: str


@pytest.fixture(scope="module")
def prepared(
    spark: SparkSession, broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> Prepared:
    """Five batches, processed by every table."""
    folder = tmp_path_factory.mktemp("prepared")
    topic = create_topic(broker, 2, message_timestamp_type="LogAppendTime")
    values = [value.replace(b"2026-", b"2021-") for value in readings(200, seed=9)]
    places = (place_of(value, 2) for value in values)
    sent = (Sent(v, key=k, partition=p) for v, (k, p) in zip(values, places, strict=True))
    produce(broker, topic, list(sent))
    pipeline = declare_kafka(folder, broker.servers, topic=topic, gold=GOLD, max_per_batch=45)
    engine = KafkaEngine(spark, pipeline, folder / "root")
    assert engine.read_all() >= 4
    engine.close()
    return Prepared(folder, broker, topic)


def newest(root: Path, table: str) -> Path:
    log = root / "readings" / table / "_delta_log"
    return max(p for p in log.glob("*.json") if '"kind":"data"' in p.read_text())


def bronze_file(root: Path) -> None:
    """Delete a file of batch 4, the third batch with records: batch 1 is the start of the topic."""
    (file, *_) = sorted((root / "readings/bronze/raw/data").glob("0-4-*/*.parquet"))
    harm(file, "missing")


def bronze_end(root: Path) -> None:
    harm(newest(root, "bronze/raw"), "missing")


def silver_entry(root: Path) -> None:
    harm(newest(root, "silver/strong"), "truncated")


def looked(spark: SparkSession, pipeline: Pipeline, layout: Layout, scratch: Path) -> Plan:
    cluster = Cluster(spark, kafka_of(pipeline))
    try:
        return examine(layout, pipeline, scratch, lambda _, *read: gone_from(cluster, *read))
    finally:
        cluster.close()


@pytest.mark.parametrize("hurt", [bronze_end, silver_entry])
def test_repaired(
    spark: SparkSession, prepared: Prepared, tmp_path: Path, hurt: Callable[[Path], None]
) -> None:
    folder = shutil.copytree(prepared.folder, tmp_path / "here")
    pipeline, root = load(folder / "readings.yml"), folder / "root"
    layout = Layout.of(str(root), "readings")
    hurt(root)
    with pytest.raises(HeadgateError) as refused:
        KafkaEngine(spark, pipeline, root)
    assert refused.value.exit_code == 5
    assert "headgate repair" in refused.value.remedy

    plan = looked(spark, pipeline, layout, tmp_path / "scratch")
    epoch = highest_epoch(layout, "readings") + 1
    apply(layout, pipeline, plan, epoch, datetime.now(UTC))
    assert not looked(spark, pipeline, layout, tmp_path / "again").is_needed

    engine = KafkaEngine(spark, pipeline, root)
    engine.read_all()
    engine.close()
    expected = derive(records_of(prepared.broker, prepared.topic), rules(gold=GOLD))
    assert differences(root, expected) == {}
    assert by_id(layout, pipeline).holds


def test_a_file_of_bronze_is_refused(
    spark: SparkSession, prepared: Prepared, tmp_path: Path
) -> None:
    folder = shutil.copytree(prepared.folder, tmp_path / "here")
    pipeline, root = load(folder / "readings.yml"), folder / "root"
    bronze_file(root)
    plan = looked(spark, pipeline, Layout.of(str(root), "readings"), tmp_path / "scratch")
    assert plan.refusal is not None
    assert "of batch 4 (partition " in plan.refusal
    assert "silver/strong has these ids of the same batches: " in plan.refusal


def test_refused_where_the_topic_has_forgotten(
    spark: SparkSession, prepared: Prepared, tmp_path: Path
) -> None:
    """The last test of the module: the topic loses its first records."""
    folder = shutil.copytree(prepared.folder, tmp_path / "here")
    pipeline, root = load(folder / "readings.yml"), folder / "root"
    for _ in range(4):
        bronze_end(root)
    expire(prepared.broker, prepared.topic, {0: 90})
    plan = looked(spark, pipeline, Layout.of(str(root), "readings"), tmp_path / "scratch")
    assert plan.refusal is not None
    assert f"{prepared.topic}/0: offsets" in plan.refusal
    assert "are lost, and the source no longer has all of it" in plan.refusal
