"""What a driver reads from goes away and comes back: the same driver waits and reads on."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.declaration.load import load
from headgate.insight.status.health import HealthContext, violations
from headgate.insight.status.limits import Limits
from headgate.lake.control.claim import claimed
from headgate.lake.control.driver_reports import last_failure
from headgate.lake.storage.layout import Layout
from headgate.setup.broker import running
from headgate.supervision.job_state import JobState, probe
from headgate.supervision.supervisor import condition_of
from tests.oracle import derive
from tests.recovery.test_kafka import PARTITIONS, Station, of_the_past
from tests.support import impatient, own_broker
from tests.support.broker import create_topic
from tests.support.drivers import PATIENCE, Running, begin
from tests.support.events import readings
from tests.support.landing import Landing, lines
from tests.support.readings import declare, rules
from tests.support.rounds import in_full
from tests.support.said import SaidHere
from tests.support.tables import differences, state
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.recovery, pytest.mark.spark]

GOLD = ("bands",)
LIMIT = Limits(outage=timedelta(seconds=1))
STOPS_WITHIN = 30.0  # seconds


class Watched:
    """A driver that runs on, and how others see it."""

    def __init__(self, declaration: Path, root: Path, module: str = "headgate.cli") -> None:
        self._about = (str(declaration), "--root", str(root))
        self._said = SaidHere(root.parent)
        self.declared = load(declaration)
        self.layout = Layout.of(str(root), self.declared.name)
        self.driver: Running = begin("run", *self._about, module=module)

    def said(self, verb: str) -> str:
        """The output of a command about the pipeline."""
        done = self._said(verb, *self._about)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def jobs(self) -> tuple[JobState, ...]:
        return probe(self.layout, datetime.now(UTC))

    @property
    def condition(self) -> str:
        return condition_of(self.jobs, None, last_failure(self.layout))

    @property
    def unwell(self) -> tuple[str, ...]:
        context = HealthContext(self.declared, self.layout, self.jobs, datetime.now(UTC))
        return violations("outage", context, LIMIT)

    def wait_for(self, what: Callable[[], object], patience: float = PATIENCE) -> None:
        def holds() -> object:
            assert self.driver.process.poll() is None, self.driver.end().output
            return what()

        wait_until(holds, f"it never came; {self.jobs}", patience, every=0.2)

    def stays_away(self, seconds: float, what: str) -> None:
        """Wait until the driver reports an outage, and then for so many seconds. All that time, it
        is reported everywhere, and the driver is the same."""
        self.wait_for(lambda: self.condition == "waiting")
        until = time.monotonic() + seconds
        self.wait_for(lambda: self.unwell)
        while time.monotonic() < until:
            assert (self.condition, self.driver.process.poll()) == ("waiting", None)
            assert what in self.unwell[0]
            time.sleep(1)
        (job,) = self.jobs
        assert job.owner.pid == self.driver.process.pid
        (source,) = job.sources.values()
        assert source.outage is not None
        assert source.outage.lasts(datetime.now(UTC)) >= timedelta(seconds=seconds)
        status = self.said("status")  # with code 0: a supervisor would start another driver
        assert what in status
        assert "waiting" in status

    def is_back(self) -> None:
        self.wait_for(lambda: self.condition == "running")
        assert self.unwell == ()

    def stops(self) -> str:
        """Stop the driver. Returns its output."""
        began = time.monotonic()
        self.driver.process.send_signal(signal.SIGTERM)
        ended = self.driver.end()
        assert time.monotonic() - began < STOPS_WITHIN
        assert ended.code == 0, ended.output
        assert (last_failure(self.layout), claimed(self.layout)) == (None, None)
        return ended.output


@pytest.fixture
def station(tmp_path: Path) -> Iterator[Station]:
    with running.start(tmp_path / "kafka") as broker:
        topic = create_topic(broker, PARTITIONS, message_timestamp_type="LogAppendTime")
        yield Station(tmp_path, broker, topic)


@pytest.mark.parametrize(
    ("seconds", "module"),
    [
        (3, impatient.__name__),
        pytest.param(600, "headgate.cli", marks=[pytest.mark.long, in_full]),
    ],
    ids=["short", "long"],
)
def test_a_driver_waits_for_its_broker_at_the_start_and_while_it_runs(
    station: Station, seconds: float, module: str
) -> None:
    """Each outage is longer than ``unreachable_after``, which applies to ``--once`` alone."""
    broker, values = station.broker, of_the_past(1_200, seed=5)
    no_answer = f"no answer from the brokers {broker.servers}"
    station.declare("1 s", max_per_batch=300)
    station.send(values[:400])
    own_broker.kill(broker)
    watched = Watched(station.declaration, station.root, module)
    try:
        watched.stays_away(seconds, no_answer)
        own_broker.restart(broker)
        watched.is_back()
        watched.wait_for(lambda: station.read == 400)
        station.send(values[400:800])
        watched.wait_for(lambda: station.read > 400)
        own_broker.kill(broker)  # while it reads
        watched.stays_away(seconds, no_answer)
        own_broker.restart(broker)
        watched.is_back()
        station.send(values[800:])
        watched.wait_for(lambda: station.read == len(values))
        own_broker.kill(broker)
        watched.stays_away(0, no_answer)
        output = watched.stops()
    finally:
        watched.driver.kill()
    assert output.count(f"{no_answer}, for ") >= 3
    assert output.count(f": {no_answer}") == 2, "each outage that is over has a line"
    own_broker.restart(broker)
    station.is_right()


def test_a_driver_waits_for_a_landing_folder_whose_disk_is_unmounted(tmp_path: Path) -> None:
    """A disk that is not mounted leaves its empty mount point, or no folder at all."""
    landing, disk = Landing(tmp_path / "landing"), tmp_path / "disk"
    values = readings(120, seed=3)
    landing.write("1.json", lines(values[:40]))
    pipeline = declare(tmp_path, landing.folder, gold=GOLD)
    root = tmp_path / "root"
    watched = Watched(pipeline.file, root)
    try:
        watched.wait_for(lambda: _read(root) == 40)
        landing.folder.rename(disk)
        watched.stays_away(2, f"there is no landing folder {landing.folder}")
        landing.folder.mkdir()
        watched.is_back()
        landing.folder.rmdir()
        disk.rename(landing.folder)
        watched.is_back()
        # The file is recorded, and the disk is away before it is read.
        watched.said("pause")
        landing.write("2.json", lines(values[40:80]))
        watched.wait_for(lambda: _has_backlog(watched.jobs))
        landing.folder.rename(disk)
        landing.folder.mkdir()
        watched.said("resume")
        watched.stays_away(2, "is empty, and 1 of its files are recorded and not read")
        landing.folder.rmdir()
        disk.rename(landing.folder)
        landing.write("3.json", lines(values[80:]))
        watched.wait_for(lambda: _read(root) == len(values))
        watched.stops()
    finally:
        watched.driver.kill()
    assert differences(root, derive(landing.records(), rules(gold=GOLD))) == {}


def _read(root: Path) -> int:
    if not any((root / "readings/bronze/raw/_delta_log").glob("*.json")):
        return 0
    return int(state(root, "bronze/raw")["total"].get("read", 0))


def _has_backlog(jobs: tuple[JobState, ...]) -> bool:
    backlogs = [source.backlog for job in jobs for source in job.sources.values()]
    return any(backlog is not None and backlog.count for backlog in backlogs)
