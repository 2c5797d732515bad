"""Joins of a folder of files and a topic, while drivers are killed and frozen: in the end, the
results are as plain Python says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.driver.task import Task
from headgate.insight.ledger.balance import balance
from headgate.insight.ledger.by_id import by_id
from headgate.lake.storage.layout import Layout
from headgate.setup.broker.running import Broker
from tests.support.broker import create_topic, produce
from tests.support.driver_here import run_here
from tests.support.drivers import run, start
from tests.support.frozen import require_rising_epochs, require_shut_out
from tests.support.joined_project import events
from tests.support.joined_sources import JoinedSources
from tests.support.landing import lines
from tests.support.readings import kafka_key
from tests.support.rounds import IN_FULL

pytestmark = [pytest.mark.recovery, pytest.mark.spark]

KILLED = (
    *("inputs.advanced", "gold.committed:6", "inputs.committed:2"),
    *("bronze.committed:3", "silver.committed:3", "late.committed:6", "gold.staged:2"),
)
"""A start commits to every table once: there are five joins."""
FROZEN = ("inputs.committed:2", "late.committed:7")
PART = 30


class TillTopic(JoinedSources):
    """Purchases are in a topic, clicks in files."""

    def begin(self, broker: Broker) -> None:
        self.broker, self.topic = broker, create_topic(broker, 1)
        self.declared = self.pipeline()
        key = kafka_key(broker.servers, topic=self.topic, max_per_batch=20, start="earliest")
        text = self.declared.file.read_text()
        text, count = re.subn(rf"files: \{{path: \"{self.folder}/till\".*\}}", lambda _: key, text)
        assert count == 1
        text = text.replace("settle: 0 s}", "settle: 0 s, max_files_per_batch: 1}")
        self.declared.file.write_text(text)
        self._unsent = events(PART * 12, seed=77)

    @property
    def declaration(self) -> Path:
        return self.declared.file

    def send(self) -> None:
        """More events arrive at both sources."""
        part, self._unsent = self._unsent[:PART], self._unsent[PART:]
        clicks = self.landings["web"]
        own = [event for event in part if event.kind == "click"]
        clicks.write(f"{len(clicks.written) + 1:05d}.json", lines(event.line for event in own))
        bought = [event.line for event in part if event.kind == "purchase"]
        produce(self.broker, self.topic, bought)
        self.sent += part


def test_pairs_of_a_folder_and_a_topic_survive_kills_and_a_frozen_driver(
    spark: SparkSession, tmp_path: Path, broker: Broker
) -> None:
    shop = TillTopic(tmp_path, spark)
    shop.begin(broker)
    shop.send()
    for place in KILLED if IN_FULL else KILLED[:2]:
        shop.send()
        ended = run(shop.declaration, shop.root, failpoint=place)
        assert ended.was_killed, f"{place}: {ended.output}"
    for place in FROZEN if IN_FULL else FROZEN[:1]:
        shop.send()
        frozen = start(shop.declaration, shop.root, failpoint=f"{place}:stop")
        try:
            frozen.wait_until_frozen()
            shop.send()
            killed = run(shop.declaration, shop.root, "--take-over", failpoint="gold.committed:6")
            assert killed.was_killed, killed.output
            require_shut_out(frozen, shop.root)
        finally:
            frozen.kill()
    pipeline = load(shop.declaration)
    run_here(spark, Task(pipeline, str(shop.root), once=True))
    require_rising_epochs(shop.root)
    assert shop.late()
    shop.compare(shop.on_time(), shop.upto())
    for join in shop.joins:
        assert sorted(shop.late_ids(join)) == sorted(event.id for event in shop.late())
    layout = Layout.of(str(shop.root), pipeline.name)
    assert balance(layout, pipeline).differences == ()
    assert by_id(layout, pipeline).findings == ()
