"""A replay of late rows while one partition is ahead of the others: a row may be late for a window
that is still open. It then waits until the window is final."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.flow.operations.late_replay import replay_document
from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from headgate.setup.broker.running import Broker
from tests.kafka.test_replay import DECLARATION
from tests.support.backfilled import backfill, unequal
from tests.support.broker import Sent, create_topic, produce
from tests.support.events import reading
from tests.support.kafka_engine import KafkaEngine
from tests.support.readings import NOON
from tests.support.tables import read

pytestmark = pytest.mark.spark


def at(partition: int, second: float) -> Sent:
    when = NOON + timedelta(seconds=second)
    return Sent(reading(f"{partition}-{second}", when, level=20), partition=partition)


def test_rows_that_are_late_for_an_open_window_wait_until_it_is_final(
    spark: SparkSession, tmp_path: Path, broker: Broker
) -> None:
    topic = create_topic(broker, 2)
    file = tmp_path / "readings.yml"
    text = DECLARATION.replace(", expectations: clean", "")
    file.write_text(text.format(servers=broker.servers, topic=topic))
    engine = KafkaEngine(spark, load(file), tmp_path / "root")

    def counted() -> list[tuple[int, bool, int]]:
        rows = [row for row in read(engine.root, "gold/per_minute") if row["window_start"] == NOON]
        return [(row["events"], row["final"], row["revision"]) for row in rows]

    def replayed() -> int:
        engine.operate("late_replay", **replay_document("per_minute"))
        engine.catch_up()
        assert balance(engine.layout, engine.pipeline).differences == ()
        assert by_id(engine.layout, engine.pipeline).findings == ()
        return sum(row["replayed"] is not None for row in read(engine.root, "late/per_minute"))

    # Partition 0 is five minutes ahead; its third record is late, and partition 1 is in the window.
    produce(broker, topic, [at(0, 10), at(0, 300), at(0, 20), at(1, 30)])
    engine.read_all()
    assert (replayed(), counted()) == (0, [(2, False, 0)])
    produce(broker, topic, [at(1, 40)])
    engine.read_all()
    assert (replayed(), counted()) == (0, [(3, False, 0)])
    produce(broker, topic, [at(1, 120)])
    engine.read_all()
    assert counted() == [(3, True, 0)]
    assert (replayed(), counted()) == (1, [(4, True, 1)])
    assert unequal(backfill(engine, begin=NOON - timedelta(days=1))) == []
    engine.close()
