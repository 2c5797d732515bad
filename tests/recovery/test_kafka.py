"""Drivers over a broker: both are killed, frozen and restarted while records keep coming."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from headgate.broker import running
from headgate.broker.running import Broker
from headgate.ledger.by_id import by_id
from headgate.spec.load import load
from headgate.storage.layout import Layout
from tests.oracle import judge
from tests.recovery.test_kills import GOLD, IN_FULL
from tests.recovery.test_zombies import epochs, versions
from tests.support.broker import Sent, create_topic, place_of, produce
from tests.support.drivers import PATIENCE, Running, run, start
from tests.support.events import readings
from tests.support.kafka_engine import records_of
from tests.support.producing import Producing
from tests.support.readings import declare_kafka, rules
from tests.support.tables import differences, state

pytestmark = pytest.mark.recovery

PARTITIONS = 3
ROUNDS = int(os.environ.get("HEADGATE_CHAOS_ROUNDS", "0"))
# Each leaves the next driver something else to take up; files are not listed here.
IN_SHORT = ("bronze.committed:2", "bronze.staged", "gold.staged")
PLACES = [place for place in IN_FULL if not place.startswith(("files", "_headgate"))]


@dataclass
class Station:
    """A topic that fills, and the drivers that read it."""

    folder: Path
    broker: Broker
    topic: str

    def __post_init__(self) -> None:
        self.root = self.folder / "root"
        self.declaration = self.declare("45 s")

    def declare(self, unreachable_after: str) -> Path:
        return declare_kafka(
            self.folder,
            self.broker.servers,
            topic=self.topic,
            max_per_batch=100,
            unreachable_after=unreachable_after,
            gold=GOLD,
        ).file

    def send(self, values: list[bytes]) -> None:
        records = []
        for value in values:
            key, partition = place_of(value, PARTITIONS)
            records.append(Sent(value, key, partition))
        produce(self.broker, self.topic, records)

    def wait_for(self, driver: Running, records: int) -> None:
        """Until bronze has so many more."""
        wanted = records + self.read
        wait_until(lambda: self.read >= wanted, driver)

    @property
    def read(self) -> int:
        if not (self.root / "readings/bronze/raw/_delta_log").exists():
            return 0
        return int(state(self.root, "bronze/raw")["total"].get("read", 0))

    def finish(self, *options: str) -> None:
        ended = run(self.declaration, self.root, *options)
        assert ended.code == 0, ended.output

    def is_right(self) -> None:
        """Every record of the topic is accounted for, and all tables are the oracle's."""
        records = records_of(self.broker, self.topic)
        assert differences(self.root, judge(records, rules(gold=GOLD))) == {}
        proof = by_id(Layout.of(str(self.root), "readings"), load(self.declaration))
        assert (proof.findings, proof.rows) == ((), len(records))


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
        yield Station(tmp_path, broker, create_topic(broker, PARTITIONS))


def test_driver_and_broker_are_killed_while_records_come(station: Station) -> None:
    broker, values = station.broker, of_the_past(30_000, seed=5)
    with Producing(broker, station.topic, PARTITIONS, values) as producing:
        for failpoint in PLACES if ROUNDS else IN_SHORT:
            ended = run(station.declaration, station.root, failpoint=failpoint)
            assert ended.was_killed, f"{failpoint}: {ended.output}"
        driver = start(station.declaration, station.root, "--on")
        station.wait_for(driver, 50)
        broker.kill()
        broker.restart()
        station.wait_for(driver, 150)
        driver.process.send_signal(signal.SIGTERM)
        ended = driver.end()
        assert ended.last_line == "done", ended.output
        # Shorter than any restart: now the driver gives up.
        station.declare("3 s")
        driver = start(station.declaration, station.root, "--on")
        station.wait_for(driver, 1)
        broker.kill()
        ended = driver.end()
        assert (ended.code, ended.last_line) == (3, "BrokersUnreachableError"), ended.output
        broker.restart()
        producing.stop()
    station.finish()
    kept = Counter(record.value for record in records_of(broker, station.topic))
    assert kept == Counter(producing.sent)
    station.is_right()


@pytest.mark.parametrize("rounds", [20 if ROUNDS else 2])
def test_a_frozen_driver_gets_nothing_in(station: Station, rounds: int) -> None:
    """Frozen with bronze's files written and their commit to come."""
    values = of_the_past(100 * rounds, seed=7)
    for number in range(rounds):
        station.send(values[100 * number : 100 * (number + 1)])
        frozen = start(station.declaration, station.root, failpoint="bronze.staged:1:stop")
        if number == 0:
            # The first file of all is the declared start's, which has no records.
            assert station.read == 0
        try:
            frozen.wait_until_frozen()
            refused = run(station.declaration, station.root)
            assert refused.last_line == "LeaseHeldError", refused.output
            for told in (f"process {frozen.process.pid}", os.uname().nodename, "since 2"):
                assert told in refused.output
            station.finish("--take-over")
            before = versions(station.root)
            frozen.resume()
            ended = frozen.end()
        finally:
            frozen.kill()
        assert ended.code == 4, ended.output
        assert ended.last_line in {"FencedError", "CommitRefusedError"}
        assert versions(station.root) == before
    for table in before:
        assert epochs(table) == sorted(epochs(table))
    station.is_right()


@pytest.mark.skipif(not ROUNDS, reason="only `make chaos` kills at random")
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_killed_at_random(station: Station, seed: int) -> None:
    chance = random.Random(seed)
    with Producing(
        station.broker, station.topic, PARTITIONS, of_the_past(30_000, seed)
    ) as producing:
        for _ in range(3):
            name = chance.choice(PLACES).partition(":")[0]
            failpoint = chance.choice(["", f"{name}:{chance.randrange(1, 5)}"])
            driver = start(station.declaration, station.root, "--on", failpoint=failpoint)
            time.sleep(chance.uniform(1, 25))
            if chance.random() < 0.5:
                station.broker.kill()
                station.broker.restart()
                time.sleep(chance.uniform(0, 10))
            driver.kill()
            driver.end()
        producing.stop()
    station.finish()
    station.is_right()
