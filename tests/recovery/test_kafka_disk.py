"""The disk is full while a batch from Kafka is staged or committed: the error says so, and the next
start continues from the last commit."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.cli.machine_faults import machine_fault
from headgate.lake.tables.table import Table
from headgate.setup.broker.running import Broker
from tests.oracle import derive
from tests.support.broker import Sent, create_topic, produce
from tests.support.events import readings
from tests.support.kafka_engine import KafkaEngine, records_of
from tests.support.landing import ARRIVED
from tests.support.readings import declare_kafka, rules
from tests.support.rounds import in_full
from tests.support.tables import differences, state

pytestmark = [pytest.mark.recovery, pytest.mark.spark]

GOLD = ("bands",)
SIZE = 4 * 1024 * 1024


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "none", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk can be mounted by root only")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(disk: Path, leave: int) -> Path:
    """Fill the disk until only ``leave`` bytes are free."""
    free = os.statvfs(disk)
    ballast = disk / "ballast"
    ballast.write_bytes(b"x" * max(0, free.f_bavail * free.f_frsize - leave))
    return ballast


@pytest.mark.parametrize("place", ["staging", pytest.param("committing", marks=in_full)])
def test_a_full_disk(
    spark: SparkSession,
    tmp_path: Path,
    broker: Broker,
    small_disk: Path,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
) -> None:
    topic = create_topic(broker, 2)
    values = readings(200, seed=6)
    produce(broker, topic, [Sent(v, partition=k % 2, at=ARRIVED) for k, v in enumerate(values)])
    pipeline = declare_kafka(tmp_path, broker.servers, topic=topic, max_per_batch=100, gold=GOLD)
    engine = KafkaEngine(spark, pipeline, small_disk / "root", now=ARRIVED)
    assert engine.list_new()
    engine.ingest()
    engine.catch_up()
    before = state(engine.root, "bronze/raw")
    ballast: Path | None = None
    if place == "staging":
        ballast = fill(small_disk, leave=8192)
    else:
        commit = Table.commit

        def full(table: Table, *arguments: object, **more: object) -> object:
            nonlocal ballast
            ballast = fill(small_disk, leave=0)
            return commit(table, *arguments, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(Table, "commit", full)
    with pytest.raises(Exception, match="(?i)no space left") as error:
        engine.read_all()
    monkeypatch.undo()
    # The error as the command line reports it.
    fault = machine_fault(error.value)
    assert fault is not None
    assert "the disk is full" in fault.message
    assert ballast is not None
    ballast.unlink()
    now = state(engine.root, "bronze/raw")
    assert (now["n"], now["offsets"]) == (before["n"], before["offsets"])
    engine.start().read_all()
    records = records_of(broker, topic, read_at=ARRIVED)
    assert differences(engine.root, derive(records, rules(gold=GOLD))) == {}
    engine.close()
