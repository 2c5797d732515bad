"""Several sources in one pipeline, which fill and go away, and the drivers that read them."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.driver.task import Task
from headgate.lake.control.requests import waiting_requests
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.decisions import ControlTable, Decisions
from headgate.setup.broker.running import Broker
from headgate.supervision.job_state import probe
from tests.oracle import Floor, RowRule, Rules, SourceRecord, Tables
from tests.oracle.rules import Happening
from tests.property.protocol.histories import history_faults
from tests.support import own_broker
from tests.support.broker import Sent, create_topic, place_of, produce
from tests.support.drivers import PATIENCE, Running, run, start
from tests.support.events import readings
from tests.support.kafka_engine import records_of
from tests.support.landing import Landing, split
from tests.support.readings import files_key, kafka_key, rules
from tests.support.said import SaidHere
from tests.support.several_readings import declare_several, derive_source, happenings, tables_of
from tests.support.tables import differences, floors, state
from tests.support.waiting import wait_until

GOLD = ("sliding", "bands")  # fewer tables, shorter runs
RULED = "expectations: levels"
SUITE = "expectations: [{id: low, expect: level >= 3}]"


def market_rules() -> Rules:
    """The rules of each source, for the oracle."""
    plain = rules(gold=GOLD)
    low = RowRule(lambda row: None if row["level"] is None else row["level"] >= 3)
    clean = replace(plain.silver["clean"], suite={"low": low})
    return replace(plain, silver={**plain.silver, "clean": clean})


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

    @abstractmethod
    def copied(self, before: Path, to: Path) -> Source:
        """The same source, if the folder ``before`` of its market was copied to ``to``."""

    @property
    def position(self) -> Mapping[int, int]:
        """The last offset of each partition so far."""
        found = sorted((record.partition, record.offset) for record in self.records())
        return dict(found)

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
        self.place.mkdir(parents=True)

    @property
    def key(self) -> str:
        return files_key(self.place, max_files_per_batch=1)

    def take(self, part: bytes) -> None:
        self.landing.write(f"{self.delivered:05d}.json", part)

    def records(self) -> list[SourceRecord]:
        return self.landing.records()

    def copied(self, before: Path, to: Path) -> Source:
        made = copy(self)
        made.place = to / self.place.relative_to(before)
        made.landing = Landing(made.place, [*self.landing.written])
        return made

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

    def copied(self, before: Path, to: Path) -> Source:
        return self

    def floors(self, root: Path) -> Sequence[Floor]:
        return floors(root)

    def go_away(self) -> None:
        own_broker.kill(self.broker)

    def come_back(self) -> None:
        own_broker.restart(self.broker)


Meant = Mapping[str, Sequence[Happening | None]]
"""The operations as they concern each source; None for one that changes none of its tables."""
NOTHING: Meant = {}


@dataclass
class Market:
    """A pipeline of several sources, and the drivers that read them. A rule of each source rejects
    rows."""

    folder: Path
    sources: Mapping[str, Source]

    def __post_init__(self) -> None:
        suite = self.folder / "expectations/levels.yml"
        suite.parent.mkdir()
        suite.write_text(SUITE)
        self.declare(*self.sources)

    def declare(self, *names: str) -> None:
        """Declare these sources, and no others."""
        keys = {name: self.sources[name].key for name in names}
        self.declaration = declare_several(self.folder, keys, gold=GOLD).file
        self.change({f"  {name}_clean:\n": f"  {name}_clean:\n    {RULED}\n" for name in keys})

    def copied(self, to: Path) -> Market:
        """The same sources and tables in another folder."""
        made = copy(self)
        shutil.copytree(self.folder, to, dirs_exist_ok=True)
        made.folder, made.declaration = to, to / self.declaration.name
        made.sources = {name: each.copied(self.folder, to) for name, each in self.sources.items()}
        made.change({str(self.folder): str(to)})
        return made

    def change(self, changes: Mapping[str, str]) -> None:
        """Change the declaration: each key to its value."""
        text = self.declaration.read_text()
        for old, new in changes.items():
            assert old in text
            text = text.replace(old, new)
        self.declaration.write_text(text)

    @property
    def root(self) -> Path:
        return self.folder / "root"

    @property
    def pipeline(self) -> Pipeline:
        return load(self.declaration)

    @property
    def layout(self) -> Layout:
        return Layout.of(str(self.root), "readings")

    @property
    def task(self) -> Task:
        return Task(self.pipeline, str(self.root), once=True)

    def deliver(self, count: int, *names: str) -> None:
        """Something arrives in the named sources, or in all."""
        for name in names or self.sources:
            self.sources[name].deliver(count)

    def run(self, *options: str, failpoint: str) -> None:
        """Run a driver that is killed at ``failpoint``."""
        ended = run(self.declaration, self.root, *options, failpoint=failpoint)
        assert ended.was_killed, f"{failpoint}: {ended.output}"

    def of(self, *arguments: str) -> Sequence[str | Path]:
        """The arguments of a command about this pipeline."""
        return self.declaration, *arguments, "--root", self.root

    def say(self, spark: SparkSession, *arguments: str | Path) -> None:
        """Run a command in this process."""
        done = SaidHere(self.folder, spark)(*map(str, arguments))
        assert done.returncode == 0, done.stdout + done.stderr

    def is_asked(self, kind: str) -> bool:
        """Whether a request of this kind waits or is decided."""
        waiting = any(each.kind == kind for each in waiting_requests(self.layout))
        return waiting or bool(self.decisions().of(kind))

    def start(self, *options: str, failpoint: str = "") -> Running:
        return start(self.declaration, self.root, *options, failpoint=failpoint)

    def read(self, name: str) -> int:
        """How many records of a source bronze has."""
        if not any((self.root / f"readings/bronze/{name}/_delta_log").glob("*.json")):
            return 0
        return int(state(self.root, f"bronze/{name}")["total"].get("read", 0))

    def is_away(self, name: str) -> bool:
        """Whether the driver reports that a source does not answer."""
        jobs = probe(self.layout, datetime.now(UTC))
        return any(job.sources[name].outage is not None for job in jobs if name in job.sources)

    def wait_for(self, driver: Running, condition: Callable[[], object]) -> None:
        def holds() -> object:
            assert driver.process.poll() is None, driver.end().output
            return condition()

        wait_until(holds, "it never came", PATIENCE, every=0.2)

    def decisions(self) -> Decisions:
        return ControlTable.of(self.layout.storage, "readings").refresh()

    def expected(
        self,
        name: str,
        meant: Meant = NOTHING,
        used: Rules | None = None,
        more: Sequence[SourceRecord] = (),
    ) -> Tables:
        """The tables of a source, with ``more`` records than it has."""
        source = self.sources[name]
        records = [*source.records(), *more]
        found = happenings(self.decisions(), meant.get(name, ()))
        floors = source.floors(tables_of(self.root, name))
        return derive_source(records, used or market_rules(), found, floors)

    def differences(self, name: str, expected: Tables) -> Mapping[str, list[str]]:
        return differences(tables_of(self.root, name), expected)

    def is_derived(
        self,
        meant: Meant = NOTHING,
        used: Mapping[str, Rules] = {},
        more: Mapping[str, Sequence[SourceRecord]] = {},
    ) -> None:
        """The tables of every source are the oracle's, and every record is accounted for by id.
        ``used`` and ``more`` as in ``expected``, by source."""
        for name in self.sources:
            expected = self.expected(name, meant, used.get(name), more.get(name, ()))
            assert self.differences(name, expected) == {}, name
        self.accounts_for({name: len(records) for name, records in more.items()})

    def accounts_for(self, more: Mapping[str, int] = {}) -> None:
        """Every record is accounted for by id. ``more``: so many records of a source were loaded or
        replayed."""
        about = ("ledger", *map(str, self.of()), "--by-id")
        proof = SaidHere(self.folder).json(*about)["by_id"]
        found = {name: each["rows"] for name, each in proof["sources"].items()}
        wanted = {
            name: len(source.records()) + more.get(name, 0) for name, source in self.sources.items()
        }
        assert (proof["findings"], found) == ([], wanted)

    def is_right(self, meant: Meant = NOTHING) -> None:
        """As ``is_derived``, and no commit has violated the model of the protocol."""
        self.is_derived(meant)
        if all(isinstance(source, Folder) for source in self.sources.values()):
            assert history_faults(self.layout, self.pipeline) == []


def folders(folder: Path, count: int, parts: int, lines: int = 20) -> dict[str, Source]:
    """Sources of files. Different records of two sources have the same ids and positions."""
    return {
        f"in{number}": Folder(
            split(readings(lines * parts, seed=number), parts), folder / str(number)
        )
        for number in range(1, count + 1)
    }
