"""Declarations and logs of every kind of source, for the contract's tests. Each new kind needs a
case here."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from headgate.declaration.contracts.source import CONNECTORS
from headgate.declaration.kinds import kind_of
from headgate.declaration.load import load
from headgate.declaration.model import Pipeline
from headgate.driver.source_loop import SourceLoop
from headgate.flow.sources.deployed_source import DeployedSource
from headgate.flow.sources.files.log import LoggedFile
from headgate.flow.sources.micro_batches import SourceBatch, SourceContext
from headgate.flow.sources.records import PartedRecords, Records
from headgate.lake.storage.files import Storage
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import State
from tests.support.brokers import Brokers
from tests.support.declared import source_of
from tests.support.landing import Landing

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECRET = "hunter2"
DECLARATION = """
pipeline: shop
sources:
  orders:
    {keys}
    record: {{event_id: [id], event_time: {{column: at}}, schema: {{id: string, at: timestamp}}}}
silver: {{clean: {{from: orders}}}}
"""
Read = list[tuple[int, Any]]
"""The partition of each record, and the value that the log of a case got for it."""


@dataclass
class Bronze:
    """Replaces ``BronzeStage`` and keeps the committed records. ``refuse`` is called before a
    commit and may raise."""

    state: State = field(default_factory=lambda: State(BronzePayload()))
    read: Read = field(default_factory=list)
    refuse: Callable[[], None] = lambda: None
    while_reading: Callable[[], None] = lambda: None

    @property
    def lock(self) -> AbstractContextManager[object]:
        return nullcontext()

    def refresh(self) -> State:
        return self.state

    @property
    def payload(self) -> BronzePayload:
        return BronzePayload.of(self.state)

    def position(self, state: State) -> BronzePayload:
        return BronzePayload.of(state)

    def ingest(self, batch: SourceBatch, now: datetime) -> State:
        taken = self._taken(batch.records)
        batch.verify()
        self.refuse()
        end = batch.end
        payload = replace(self.payload, offsets=dict(end.offsets), topics=tuple(end.topics))
        self.state = replace(self.state, n=self.state.n + 1, payload=payload)
        self.read += taken
        return self.state

    def _taken(self, records: Records) -> Read:
        if not isinstance(records, PartedRecords):
            return cast(Read, records)
        self.while_reading()
        rows = [row for block in records.blocks() for row in block.to_pylist()]
        return [(row["partition"], int(row["value"])) for row in rows]


class Taken(list[tuple[int, Any]]):
    """What a fake reader returns instead of records; each of them has one byte."""

    record_size = 1.0


@dataclass
class Log(ABC):
    """The input of a source, in ``folder``, with fakes for everything that would need Spark."""

    folder: Path
    patched: pytest.MonkeyPatch
    written: Read = field(default_factory=list)
    while_reading: Callable[[], None] = lambda: None

    @abstractmethod
    def put(self, records: int) -> None:
        """Add records at the end."""

    @abstractmethod
    def rewrite(self) -> None:
        """Replace unread records with other ones at the same offsets."""

    @abstractmethod
    def forget(self, records: int) -> None:
        """Delete the first records."""

    def spark(self) -> Any:
        return None

    def open(self, pipeline: Pipeline, bronze: Bronze) -> SourceLoop:
        source = source_of(pipeline)
        bronze.while_reading = self._is_read
        place, connector = self.place(pipeline), CONNECTORS[source.kind]
        kept = {kind_of(s.table.name).name: s for s in connector.tables(place)}
        for name, shape in kept.items():
            shape.create(name)
            shape.table.fence(1)
        context = SourceContext(
            *(self.spark(), pipeline.name, pipeline.file, source),
            tables={name: shape.table for name, shape in kept.items()},
            epoch=1,
            clock=lambda: NOON,
        )
        loop = SourceLoop(
            *(source.name, partial(connector.micro_batches, context), bronze), lambda: NOON
        )
        loop.begin()
        return loop

    def _is_read(self) -> None:
        self.while_reading()

    def place(self, pipeline: Pipeline) -> DeployedSource:
        return DeployedSource(
            Storage(str(self.folder / "root")), pipeline.name, source_of(pipeline)
        )

    @contextmanager
    def session(self) -> Iterator[Any]:
        yield self.spark()


@dataclass
class FilesOf(Log):
    def __post_init__(self) -> None:
        self.landing = Landing(self.folder / "landing")
        self.landing.folder.mkdir()
        self.patched.setattr("headgate.flow.sources.files.micro_batches.records_of", self._read)

    def put(self, records: int) -> None:
        for _ in range(records):
            number = len(self.written)
            self.landing.write(f"{number:03d}.json", b"%d" % number, NOON)
            self.written.append((0, number))

    def rewrite(self) -> None:
        number = len(self.written) - 1
        self.landing.write(f"{number:03d}.json", b"%09d" % number, NOON)

    def forget(self, records: int) -> None:
        for number in range(records):
            (self.landing.folder / f"{number:03d}.json").unlink()

    def _read(self, _: object, __: object, files: Sequence[LoggedFile]) -> Taken:
        self.while_reading()
        return Taken((0, int((self.landing.folder / file.path).read_bytes())) for file in files)


@dataclass
class KafkaOf(Log):
    brokers: Brokers = field(default_factory=Brokers)

    def __post_init__(self) -> None:
        self.brokers.make("orders", 0, 0)
        for module in ("batches", "losses"):
            self.patched.setattr(
                f"headgate.flow.sources.kafka.{module}.Cluster", lambda *_: self.brokers
            )
        read = "headgate.flow.sources.kafka.batches.KafkaReader"
        self.patched.setattr(read, lambda *_: SimpleNamespace(read=self._read))

    def put(self, records: int) -> None:
        for _ in range(records):
            partition = len(self.written) % 2
            log = self.brokers.logs["orders"][partition]
            self.written.append((partition, log.end))
            log.end += 1

    def rewrite(self) -> None:
        self.brokers.make("orders", *(log.end for log in self.brokers.logs["orders"]))

    def forget(self, records: int) -> None:
        for log in self.brokers.logs["orders"]:
            log.first = records

    def _read(
        self, _: object, start: Mapping[int, int], end: Mapping[int, int], *__: object
    ) -> Taken:
        self.while_reading()
        return Taken((p, offset) for p in end for offset in range(start[p], end[p]))


@dataclass
class NumbersOf(Log):
    first: int = 0

    def put(self, records: int) -> None:
        start = len(self.written)
        self.written += [(0, number) for number in range(start, start + records)]
        self._write([str(number) for _, number in self.written])

    def rewrite(self) -> None:
        self._write(["another"] * len(self.written))

    def forget(self, records: int) -> None:
        self.first = records
        self._write([str(number) for _, number in self.written])

    def _write(self, values: Sequence[str]) -> None:
        records = [{"at": NOON.isoformat(), "value": value} for value in values[self.first :]]
        content = json.dumps({"first": self.first, "records": records})
        (self.folder / "orders.json").write_text(content)


@dataclass(frozen=True)
class Case:
    """``keys`` of a source whose batches take ``most`` records. ``same`` keys mean the same,
    ``other`` keys something else (None if none do). ``wrong`` keys are reported at the path ``at``
    with the text ``problem``. ``secret`` keys hold SECRET (None if none may)."""

    kind: str
    log: type[Log]
    keys: str
    same: str
    wrong: str
    at: str
    problem: str
    other: str | None = None
    secret: str | None = None
    most: int = 3


_SERVERS = "servers: 'a:1'"
CASES = (
    Case(
        "files",
        FilesOf,
        keys="files: {path: landing, format: json, settle: 0 s, max_files_per_batch: 3}",
        same="files: {path: elsewhere, format: json}",
        other="files: {path: landing, format: parquet}",
        wrong="files: {path: landing, format: json, csv: {header: true}}",
        at="files.csv",
        problem="the format is json",
    ),
    Case(
        "kafka",
        KafkaOf,
        keys=f"kafka: {{{_SERVERS}, topic: orders, max_per_batch: 3}}",
        same="kafka: {servers: 'b:2', topic: orders, max_per_batch: 4}",
        other=f"kafka: {{{_SERVERS}, topic: returns}}",
        wrong=f"kafka: {{{_SERVERS}, pattern: 'o.*', start: {{0: 1}}}}",
        at="kafka.start",
        problem="offsets belong to the partitions of one topic",
        secret=f"kafka: {{{_SERVERS}, topic: o, options: {{sasl.jaas.config: '${{env:SECRET}}'}}}}",
    ),
    Case(
        "numbers",
        NumbersOf,
        keys="numbers: {path: orders.json, most: 3}",
        same="numbers: {path: others.json}",
        wrong="numbers: {path: orders.csv}",
        at="numbers.path",
        problem="is not the name of a JSON document",
        secret="numbers: {path: orders.json, password: '${env:SECRET}'}",
    ),
)


def declared(keys: str, folder: Path) -> Pipeline:
    """A pipeline with one source of these keys. Raises DeclarationError."""
    return load(folder / "shop.yml", text=DECLARATION.format(keys=keys))
