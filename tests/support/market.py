"""Several sources in one pipeline, which fill and go away, and the drivers that read them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from headgate.declaration.load import load
from headgate.driver.task import Task
from headgate.lake.storage.layout import Layout
from headgate.setup.broker.running import Broker
from headgate.supervision.job_state import probe
from tests.oracle import Closing, Floor, SourceRecord, derive
from tests.property.protocol.histories import history_faults
from tests.support import own_broker
from tests.support.broker import Sent, create_topic, place_of, produce
from tests.support.drivers import PATIENCE, Running, run, start
from tests.support.events import readings
from tests.support.kafka_engine import records_of
from tests.support.landing import Landing, split
from tests.support.readings import files_key, kafka_key, rules
from tests.support.said import SaidHere
from tests.support.several_readings import declare_several, tables_of
from tests.support.tables import differences, floors, state
from tests.support.waiting import wait_until

GOLD = ("sliding", "bands")  # fewer tables, shorter runs


@dataclass
class Source(ABC):
    """``parts`` are what arrives, one after the other: each has some lines."""

    parts: list[bytes]
    delivered: int = field(default=0, init=False)

    def deliver(self, count: int) -> None:
        for part in self.parts[self.delivered : self.delivered + count]:
            self.delivered += 1
            self.take(part)

    @property
    @abstractmethod
    def key(self) -> str:
        """Its key in the declaration."""

    @abstractmethod
    def take(self, part: bytes) -> None: ...

    @abstractmethod
    def records(self) -> list[SourceRecord]: ...

    def floors(self, root: Path) -> Sequence[Floor]:
        """The watermarks of its bronze, if the oracle needs them."""
        return ()

    @abstractmethod
    def go_away(self) -> None: ...

    @abstractmethod
    def come_back(self) -> None: ...


@dataclass
class Folder(Source):
    """A landing folder."""

    place: Path

    def __post_init__(self) -> None:
        self.landing = Landing(self.place)
        self.place.mkdir()

    @property
    def key(self) -> str:
        return files_key(self.place, max_files_per_batch=1)

    def take(self, part: bytes) -> None:
        self.landing.write(f"{self.delivered:05d}.json", part)

    def records(self) -> list[SourceRecord]:
        return self.landing.records()

    def go_away(self) -> None:
        self.place.rename(self.place.with_suffix(".away"))

    def come_back(self) -> None:
        self.place.with_suffix(".away").rename(self.place)


@dataclass
class Topic(Source):
    """A topic of a broker of its own."""

    broker: Broker
    partitions: int = 2

    def __post_init__(self) -> None:
        self.topic = create_topic(
            self.broker, self.partitions, message_timestamp_type="LogAppendTime"
        )

    @property
    def key(self) -> str:
        return kafka_key(
            self.broker.servers, topic=self.topic, max_per_batch=60, unreachable_after="5 minutes"
        )

    def take(self, part: bytes) -> None:
        sent = []
        for value in part.splitlines():
            key, partition = place_of(value, self.partitions)
            sent.append(Sent(value, key, partition))
        produce(self.broker, self.topic, sent)

    def records(self) -> list[SourceRecord]:
        return records_of(self.broker, self.topic)

    def floors(self, root: Path) -> Sequence[Floor]:
        return floors(root)

    def go_away(self) -> None:
        own_broker.kill(self.broker)

    def come_back(self) -> None:
        own_broker.restart(self.broker)


@dataclass
class Market:
    """A pipeline of several sources, and the drivers that read them."""

    folder: Path
    sources: Mapping[str, Source]

    def __post_init__(self) -> None:
        self.root = self.folder / "root"
        keys = {name: source.key for name, source in self.sources.items()}
        self.pipeline = declare_several(self.folder, keys, gold=GOLD)
        self.declaration = self.pipeline.file
        self.task = Task(self.pipeline, str(self.root), once=True)

    def deliver(self, count: int, *names: str) -> None:
        """Something arrives in the named sources, or in all."""
        for name in names or self.sources:
            self.sources[name].deliver(count)

    def run(self, *options: str, failpoint: str) -> None:
        """Run a driver that is killed at ``failpoint``."""
        ended = run(self.declaration, self.root, *options, failpoint=failpoint)
        assert ended.was_killed, f"{failpoint}: {ended.output}"

    def start(self, *options: str, failpoint: str = "") -> Running:
        return start(self.declaration, self.root, *options, failpoint=failpoint)

    def read(self, name: str) -> int:
        """How many records of a source bronze has."""
        if not any((self.root / f"readings/bronze/{name}/_delta_log").glob("*.json")):
            return 0
        return int(state(self.root, f"bronze/{name}")["total"].get("read", 0))

    def is_away(self, name: str) -> bool:
        """Whether the driver reports that a source does not answer."""
        jobs = probe(Layout.of(str(self.root), self.pipeline.name), datetime.now(UTC))
        return any(job.sources[name].outage is not None for job in jobs if name in job.sources)

    def wait_for(self, driver: Running, condition: Callable[[], object]) -> None:
        def holds() -> object:
            assert driver.process.poll() is None, driver.end().output
            return condition()

        wait_until(holds, "it never came", PATIENCE, every=0.2)

    def is_right(self, drains: Sequence[Mapping[str, int]] = ()) -> None:
        """The tables of every source are the oracle's, and every record is accounted for by id.
        ``drains``: windows were closed when so many parts of each source were processed."""
        lengths = dict[str, int]()
        for name, source in self.sources.items():
            records, shown = source.records(), tables_of(self.root, name)
            last = [max(r.offset for r in records if r.offset >> 36 < at[name]) for at in drains]
            expected = derive(
                records,
                rules(gold=GOLD),
                drains=[Closing({0: offset}) for offset in last],
                floors=source.floors(shown),
            )
            assert differences(shown, expected) == {}, name
            lengths[name] = len(records)
        about = ("ledger", str(self.declaration), "--root", str(self.root), "--by-id")
        proof = SaidHere(self.folder).json(*about)["by_id"]
        found = {name: each["rows"] for name, each in proof["sources"].items()}
        assert (proof["findings"], found) == ([], lengths)
        if all(isinstance(source, Folder) for source in self.sources.values()):
            layout = Layout.of(str(self.root), self.pipeline.name)
            assert history_faults(layout, load(self.declaration)) == []


def folders(folder: Path, count: int, parts: int, lines: int = 20) -> dict[str, Source]:
    """Sources of files. Different records of two sources have the same ids and positions."""
    return {
        f"in{number}": Folder(
            split(readings(lines * parts, seed=number), parts), folder / str(number)
        )
        for number in range(1, count + 1)
    }
