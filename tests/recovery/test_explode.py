"""Arrays of a topic whose items are rows, while drivers are killed and history is loaded: in the
end, every item of every record is in one place."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.driver.task import Task
from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from headgate.lake.storage.layout import Layout
from headgate.setup.broker.running import Broker
from tests.oracle import Arrival, OtherDecision, Replay, SourceRecord, derive
from tests.support.broker import Sent, create_topic, place_of, produce
from tests.support.driver_here import run_here
from tests.support.drivers import run
from tests.support.exploded_project import KEYS, ORACLE, ExplodedProject, orders
from tests.support.kafka_engine import records_of
from tests.support.loads import wishes
from tests.support.readings import kafka_key
from tests.support.rounds import IN_FULL
from tests.support.said import SaidHere
from tests.support.tables import differences, floors, read, states

pytestmark = [pytest.mark.recovery, pytest.mark.spark]

PARTITIONS = 2
OF_STREAM = ("silver.committed:3", "rejected.committed:2", "late.committed:3", "gold.committed:3")
"""The first of two silver tables has a batch, and the other lacks it; and so on. A start commits to
every table once."""
OF_LOAD = ("load.ingested", "load.ingested:2", "load.replay_intended", "operation.table_done")
PART = 30
"""How many orders are sent before each driver starts."""
BATCH = 30


@dataclass
class Orders:
    """A topic of orders. The first ones were sent before the pipeline began to read it."""

    folder: Path
    spark: SparkSession
    broker: Broker

    def __post_init__(self) -> None:
        values = [json.dumps(each).encode() for each in orders(12 * PART, seed=9)]
        self._unsent = iter(values)
        self.topic = create_topic(self.broker, PARTITIONS, message_timestamp_type="LogAppendTime")
        self.send(3 * PART)
        self.history = records_of(self.broker, self.topic)
        self.begins = {p: sum(r.partition == p for r in self.history) for p in range(PARTITIONS)}
        project = ExplodedProject(self.folder, self.spark)
        self.file, self.root = project.declaration, project.root
        key = kafka_key(
            *(self.broker.servers,), topic=self.topic, max_per_batch=BATCH, start=str(self.begins)
        )
        text, count = re.subn(r"files: \{.*\}", lambda _: key, self.file.read_text())
        assert count == 1
        self.file.write_text(text)
        self.pipeline = load(self.file)
        self.layout = Layout.of(str(self.root), self.pipeline.name)

    def send(self, count: int) -> None:
        values = [next(self._unsent) for _ in range(count)]
        places = (place_of(value, PARTITIONS) for value in values)
        sent = [Sent(value, id_, at) for value, (id_, at) in zip(values, places, strict=True)]
        produce(self.broker, self.topic, sent)

    def kill_at(self, failpoint: str) -> None:
        """More orders arrive, and a driver is killed while it processes them."""
        self.send(PART)
        ended = run(self.file, self.root, failpoint=failpoint)
        assert ended.was_killed, f"{failpoint}: {ended.output}"

    def load_history(self) -> None:
        said = SaidHere(self.folder, self.spark)
        asked = ("load", self.file, "--kafka", self.topic, "--no-wait", "--root", self.root)
        done = said(*map(str, asked))
        assert done.returncode == 0, done.stdout + done.stderr

    def finish(self) -> None:
        self.send(PART)
        run_here(self.spark, Task(self.pipeline, str(self.root), once=True))
        assert [*wishes(self.layout, self.pipeline.name).values()] == ["done"]

    def stream(self) -> list[SourceRecord]:
        found = records_of(self.broker, self.topic)
        return [each for each in found if each.offset >= self.begins[each.partition]]

    def loaded(self) -> list[SourceRecord]:
        """The records of the load, each placed after the records of the stream that bronze had read
        before it. Only this order depends on when drivers were killed."""
        placed: list[SourceRecord] = []
        waiting: Sequence[SourceRecord] = self.history
        for said in states(self.root, "bronze/raw"):
            for each in said["loads"]:
                after = {int(p): end - 1 for p, end in said["offsets"].items()}
                is_read = _ReadUpTo(each["offsets"])
                placed += (_moved(record, after) for record in waiting if is_read(record))
                waiting = [record for record in waiting if not is_read(record)]
        assert not waiting
        return placed


@dataclass(frozen=True)
class _ReadUpTo:
    """``offsets`` are where a load continues, by partition."""

    offsets: Mapping[str, int]

    def __call__(self, record: SourceRecord) -> bool:
        return record.offset < self.offsets.get(str(record.partition), 0)


def _moved(record: SourceRecord, after: Mapping[int, int]) -> SourceRecord:
    return replace(record, offset=record.offset - (1 << 56), arrival=Arrival(1, after))


def test_every_item_is_in_one_place(spark: SparkSession, tmp_path: Path, broker: Broker) -> None:
    """Copies of orders are in the topic before and after the place where reading begins."""
    sent = Orders(tmp_path, spark, broker)
    for place in OF_STREAM if IN_FULL else OF_STREAM[:1]:
        sent.kill_at(place)
    sent.load_history()
    for place in OF_LOAD if IN_FULL else OF_LOAD[:1]:
        sent.kill_at(place)
    sent.finish()

    stream, history = sent.stream(), sent.loaded()
    assert len({tuple(each.arrival.after.items()) for each in history if each.arrival}) > 1
    end = {p: max(r.offset for r in stream if r.partition == p) for p in range(PARTITIONS)}
    replays = (Replay(end, table, load=1) for table in ("per_minute", "hourly"))
    expected = derive(
        *([*stream, *history], ORACLE),
        drains=[OtherDecision(), *replays],
        floors=floors(sent.root),
    )
    assert differences(sent.root, expected, KEYS) == {}
    ours = {
        (row["_partition"], row["_offset"], row["_item"]) for row in read(sent.root, "silver/clean")
    }
    assert {offset < 0 for _, offset, _ in ours} == {True, False}
    assert max(item for *_, item in ours) > 2
    assert balance(sent.layout, sent.pipeline).differences == ()
    proof = by_id(sent.layout, sent.pipeline)
    assert (proof.findings, proof.rows) == ((), len(stream) + len(history))
