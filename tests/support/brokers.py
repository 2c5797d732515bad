"""Fake brokers, a fake reader and a fake bronze for Kafka's micro-batches. They hold only
numbers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime

from headgate.flow.sources.kafka.failures import BrokersUnreachableError, TopicMissingError
from headgate.flow.sources.kafka.topics import Topic, TopicPartition
from headgate.flow.sources.micro_batches import BatchEnd, SourceBatch
from headgate.flow.sources.records import PartedRecords
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import State


@dataclass
class Log:
    """A partition that has the offsets ``[first, end)``."""

    end: int = 0
    first: int = 0


@dataclass
class Brokers:
    """Replaces ``Cluster``: topics by name, each with an id and logs."""

    ids: dict[str, str] = field(default_factory=dict)
    logs: dict[str, list[Log]] = field(default_factory=dict)
    silent: int = 0
    """How many of the next requests get no answer."""
    closed: bool = False

    def make(self, topic: str, *ends: int) -> None:
        """Create a topic whose logs end at ``ends``. An existing topic gets a new id and new
        logs."""
        self.ids[topic] = f"id{len(self.ids)}{self.ids.get(topic, '')}"
        self.logs[topic] = [Log(end) for end in ends]

    def remove(self, topic: str) -> None:
        del self.logs[topic]

    def topics(self) -> tuple[Topic, ...]:
        self._answer()
        if not self.logs:
            raise TopicMissingError("no topic", remedy="topics that exist: none")
        return tuple(Topic(t, self.ids[t], len(self.logs[t])) for t in sorted(self.logs))

    def offsets(
        self, partitions: Collection[TopicPartition], at: str | datetime
    ) -> Mapping[int, int]:
        self._answer()
        logs = {p.number: self.logs[p.topic][p.partition] for p in partitions}
        return {n: log.first if at == "earliest" else log.end for n, log in logs.items()}

    def close(self) -> None:
        self.closed = True

    def _answer(self) -> None:
        if self.silent:
            self.silent -= 1
            raise BrokersUnreachableError("no answer", remedy="see whether a broker listens")


@dataclass
class Reading:
    """Replaces ``KafkaReader``: the next read calls ``meanwhile``, once."""

    meanwhile: Callable[[], None] = lambda: None

    record_size = 1.0

    def read(self, *_: object) -> Reading:
        happening, self.meanwhile = self.meanwhile, lambda: None
        happening()
        return self


@dataclass
class Bronze:
    """Replaces ``BronzeStage`` and keeps the commits. ``clocks`` are the partition watermarks that
    a commit of records stores. ``then`` is called after a commit, and may raise."""

    state: State = field(default_factory=lambda: State(BronzePayload()))
    commits: list[BatchEnd] = field(default_factory=list)
    clocks: dict[str, int] = field(default_factory=dict)
    then: Callable[[], None] = lambda: None

    @property
    def lock(self) -> AbstractContextManager[object]:
        return nullcontext()

    def refresh(self) -> State:
        return self.state

    @property
    def offsets(self) -> Mapping[str, int]:
        return self.payload.offsets

    @property
    def payload(self) -> BronzePayload:
        return BronzePayload.of(self.state)

    def position(self, state: State) -> BronzePayload:
        return BronzePayload.of(state)

    def ingest(self, batch: SourceBatch, now: datetime) -> State:
        batch.verify()
        held, reached = self.payload, batch.end
        payload = replace(
            held,
            offsets=dict(reached.offsets),
            topics=tuple(reached.topics),
            gaps=(*held.gaps, *reached.gaps),
            clocks=held.clocks if isinstance(batch.records, PartedRecords) else dict(self.clocks),
        )
        self.state = replace(self.state, n=self.state.n + 1, payload=payload)
        self.commits.append(reached)
        self.then()
        return self.state
