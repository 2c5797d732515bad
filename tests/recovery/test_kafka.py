"""Drivers over a broker: both are killed, frozen and restarted while records keep coming."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.driver.lease import LeaseHeldError
from headgate.driver.task import Task
from headgate.insight.ledger.by_id import by_id
from headgate.lake.storage.layout import Layout
from headgate.setup.broker import running
from headgate.setup.broker.running import Broker
from tests.oracle import SourceRecord, derive
from tests.recovery.test_kills import EVERYWHERE, GOLD
from tests.support import own_broker
from tests.support.broker import Sent, add_partitions, create_topic, place_of, produce
from tests.support.driver_here import run_here
from tests.support.drivers import PATIENCE, Running, run, start
from tests.support.events import readings
from tests.support.frozen import require_rising_epochs, require_shut_out
from tests.support.kafka_engine import records_of
from tests.support.producing import Producing
from tests.support.readings import declare_kafka, rules
from tests.support.rounds import IN_FULL, ROUNDS, in_full
from tests.support.tables import differences, floors, state, states

pytestmark = [pytest.mark.recovery, pytest.mark.spark]

PARTITIONS = 4
"""How many partitions the stream of records goes to."""
QUIET = PARTITIONS
"""The first partition that joins them: it becomes idle, and comes back."""
IDLE = timedelta(seconds=20)
KILLS = 6
"""Kills in a random round: starting and ending a round costs as much as two kills."""
PLACES = [place for place in EVERYWHERE if not place.startswith(("files", "_headgate"))]


@dataclass
class Station:
    """A topic that fills, and the drivers that read it."""

    folder: Path
    broker: Broker
    topic: str
    partitions: int = PARTITIONS

    def __post_init__(self) -> None:
        self.root = self.folder / "root"
        self.declaration = self.declare("5 minutes")

    def declare(self, unreachable_after: str, max_per_batch: int = 100) -> Path:
        return declare_kafka(
            self.folder,
            self.broker.servers,
            topic=self.topic,
            max_per_batch=max_per_batch,
            unreachable_after=unreachable_after,
            idle_after=f"{IDLE.seconds} s",
            gold=GOLD,
        ).file

    def send(self, values: list[bytes]) -> None:
        """Send to the partitions that the stream of records goes to."""
        records = []
        for value in values:
            key, partition = place_of(value, PARTITIONS)
            records.append(Sent(value, key, partition))
        produce(self.broker, self.topic, records)

    def send_to(self, partition: int, count: int, seed: int) -> int:
        """Send readings with ids of their own. Returns the number of records."""
        mark = f'"id": "p{partition}-{seed}-'.encode()
        values = [v.replace(b'"id": "', mark) for v in of_the_past(count, seed)]
        produce(self.broker, self.topic, [Sent(v, partition=partition) for v in values])
        return len(values)

    def let_one_join(self, seed: int) -> None:
        self.partitions += 1
        add_partitions(self.broker, self.topic, self.partitions)
        self.send_to(self.partitions - 1, 15, seed)

    def wait_for_idling(self, driver: Running) -> None:
        """Wait until the watermark has advanced without the idle partition."""
        wait_until(lambda: self.has_idled, driver)

    def let_the_silent_one_return(self, driver: Running) -> None:
        """Send to the idle partition: the watermark waits for it again until it is idle once
        more."""
        end = self.bronze["offsets"][str(QUIET)] + self.send_to(QUIET, 15, seed=14)
        wait_until(lambda: self.bronze["offsets"][str(QUIET)] == end, driver)
        stands = self.bronze["watermark"]
        wait_until(lambda: self.bronze["watermark"] > stands, driver)

    @property
    def has_idled(self) -> bool:
        now = self.bronze
        clock = now["clocks"].get(str(QUIET))
        return bool(clock and now["watermark"] and now["watermark"] > clock)

    @property
    def bronze(self) -> dict[str, Any]:
        return state(self.root, "bronze/raw")

    def wait_for(self, driver: Running, records: int) -> None:
        """Wait until bronze has so many more records."""
        self.wait_for_total(driver, records + self.read)

    def wait_for_total(self, driver: Running, records: int) -> None:
        wait_until(lambda: self.read >= records, driver)

    @property
    def read(self) -> int:
        if not any((self.root / "readings/bronze/raw/_delta_log").glob("*.json")):
            return 0
        return int(self.bronze["total"].get("read", 0))

    def finish(self, *options: str) -> None:
        ended = run(self.declaration, self.root, *options)
        assert ended.code == 0, ended.output

    def is_right(self) -> None:
        """Every record of the topic is accounted for, and all tables are the oracle's."""
        records = records_of(self.broker, self.topic)
        expected = derive(records, rules(gold=GOLD), floors=floors(self.root))
        assert differences(self.root, expected) == {}
        self.waited_for_what_came(records)
        proof = by_id(Layout.of(str(self.root), "readings"), load(self.declaration))
        assert (proof.findings, proof.rows) == ((), len(records))

    def waited_for_what_came(self, records: list[SourceRecord]) -> None:
        """The watermark has passed a partition only if nothing had arrived there for ``IDLE``."""
        known = states(self.root, "bronze/raw")
        for before, now in pairwise(known):
            if now["watermark"] == before["watermark"]:
                continue
            at = datetime.fromtimestamp(now["at"] / 1_000_000, UTC)
            for partition, clock in now["clocks"].items():
                if clock < now["watermark"]:
                    end = now["offsets"][partition]
                    came = [
                        record.ingested_at
                        for record in records
                        if record.partition == int(partition) and record.offset < end
                    ]
                    assert at - max(came) >= IDLE, (partition, now)


def wait_until(condition: Callable[[], bool], driver: Running) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert driver.process.poll() is None, driver.end().output
        assert time.monotonic() < until, "it never came"
        time.sleep(0.2)


def of_the_past(count: int, seed: int) -> list[bytes]:
    """Events of a year that is past by every broker's clock."""
    return [value.replace(b"2026-", b"2021-") for value in readings(count, seed)]


@pytest.fixture
def station(tmp_path: Path) -> Iterator[Station]:
    with running.start(tmp_path / "kafka") as broker:
        topic = create_topic(broker, PARTITIONS, message_timestamp_type="LogAppendTime")
        yield Station(tmp_path, broker, topic)


def test_driver_and_broker_are_killed_while_records_come(
    station: Station, spark: SparkSession
) -> None:
    broker, values = station.broker, of_the_past(30_000, seed=5)
    with Producing(broker, station.topic, PARTITIONS, values) as producing:
        for failpoint in PLACES if IN_FULL else ():
            ended = run(station.declaration, station.root, failpoint=failpoint)
            assert ended.was_killed, f"{failpoint}: {ended.output}"
        station.declare("5 minutes", max_per_batch=2_000)  # small batches would take minutes
        driver = start(station.declaration, station.root, "--on")
        station.wait_for(driver, 1)
        own_broker.kill(broker)
        own_broker.restart(broker)
        station.let_one_join(seed=12)
        station.wait_for(driver, 50)
        driver.kill()
        producing.stop()
    task = Task(load(station.declaration), str(station.root), once=True)
    run_here(spark, task)
    kept = Counter(
        record.value
        for record in records_of(broker, station.topic)
        if record.partition < PARTITIONS
    )
    assert kept == Counter(producing.sent)
    station.is_right()


@in_full
def test_a_partition_falls_silent_and_comes_back(station: Station) -> None:
    """Uses the clock of the machine; ``tests/kafka/test_idle.py`` does the same with its own
    clock."""
    station.let_one_join(seed=11)
    values = of_the_past(30_000, seed=5)
    with Producing(station.broker, station.topic, PARTITIONS, values) as producing:
        driver = start(station.declaration, station.root, "--on")
        station.wait_for(driver, 1)
        station.wait_for_idling(driver)
        station.let_the_silent_one_return(driver)
        station.send_to(QUIET, 15, seed=13)
        producing.stop()
        driver.process.send_signal(signal.SIGTERM)
        ended = driver.end()
        assert ended.last_line == "done", ended.output
    station.finish()
    station.is_right()


@in_full
def test_a_frozen_driver_gets_nothing_in(station: Station, spark: SparkSession) -> None:
    """Frozen after bronze's files are written and before their commit. In short runs,
    ``test_zombies.py`` freezes a driver that reads files, and ``tests/kafka/test_takeover.py``
    replaces a driver that reads a topic."""
    rounds = 20
    values = of_the_past(100 * rounds, seed=7)
    for number in range(rounds):
        station.send(values[100 * number : 100 * (number + 1)])
        frozen = start(station.declaration, station.root, failpoint="bronze.staged:1:stop")
        if number == 0:
            # The first file is that of the declared start, which has no records.
            assert station.read == 0
        try:
            frozen.wait_until_frozen()
            with pytest.raises(LeaseHeldError) as refused:
                # In this process: the lease expires while another one starts.
                run_here(spark, Task(load(station.declaration), str(station.root), once=True))
            for told in (f"process {frozen.process.pid}", os.uname().nodename, "since 2"):
                assert told in str(refused.value)
            station.finish("--take-over")
            require_shut_out(frozen, station.root)
        finally:
            frozen.kill()
    require_rising_epochs(station.root)
    station.is_right()


@in_full
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_killed_at_random(station: Station, seed: int) -> None:
    chance = random.Random(seed)
    station.let_one_join(seed=11)
    with Producing(
        station.broker, station.topic, PARTITIONS, of_the_past(30_000, seed)
    ) as producing:
        for number in range(KILLS):
            name = chance.choice(PLACES).partition(":")[0]
            failpoint = chance.choice(["", f"{name}:{chance.randrange(1, 5)}"])
            driver = start(station.declaration, station.root, "--on", failpoint=failpoint)
            if number == 1:
                station.let_one_join(seed=12)
            time.sleep(chance.uniform(1, 25))
            if chance.random() < 0.5:
                own_broker.kill(station.broker)
                own_broker.restart(station.broker)
                time.sleep(chance.uniform(0, 10))
            driver.kill()
        station.send_to(QUIET, 15, seed=13)
        producing.stop()
    station.finish()
    station.is_right()
