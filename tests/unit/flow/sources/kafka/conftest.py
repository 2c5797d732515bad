"""A source of Kafka with fake brokers, which have offsets only."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Unpack, cast

import pytest

from headgate.declaration.model import Pipeline
from headgate.driver.source_loop import SourceLoop
from headgate.flow.sources.kafka import batches
from headgate.flow.sources.kafka.micro_batches import KafkaMicroBatches
from headgate.flow.sources.micro_batches import SourceContext
from tests.support.brokers import Brokers, Bronze, Reading
from tests.support.declared import source_of
from tests.support.readings import KafkaKeys, declare_kafka

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass
class Place:
    """One pipeline, its brokers and its bronze; ``start`` is a new driver."""

    folder: Path
    brokers: Brokers = field(default_factory=Brokers)
    reading: Reading = field(default_factory=Reading)
    bronze: Bronze = field(default_factory=Bronze)
    now: float = 0.0
    thread: threading.Thread = field(default_factory=threading.current_thread)
    check: Callable[[], None] = lambda: None

    def declare(self, **keys: Unpack[KafkaKeys]) -> Pipeline:
        if "topic" not in keys and "pattern" not in keys:
            keys["pattern"] = '".*"'
        return declare_kafka(self.folder, "localhost:1", **keys)

    def start(self, *, accept_gap: bool = False, **keys: Unpack[KafkaKeys]) -> SourceLoop:
        """A source whose brokers answer at once."""
        loop = self._loop(timedelta(), keys, accept_gap=accept_gap)
        loop.begin()
        return loop

    def awaited(self, limit: timedelta | None = None, **keys: Unpack[KafkaKeys]) -> SourceLoop:
        """A source as a driver uses it, which has answered once."""
        loop = self._loop(limit, keys)
        loop.begin()
        return loop

    def _loop(
        self, limit: timedelta | None, keys: KafkaKeys, *, accept_gap: bool = False
    ) -> SourceLoop:
        pipeline = self.declare(**keys)
        context = SourceContext(
            *(cast(Any, None), pipeline.name, pipeline.file, source_of(pipeline)),
            tables={},
            epoch=1,
            clock=lambda: NOON,
            monotonic=lambda: self.now,
            accept_gap=accept_gap,
        )
        return SourceLoop(
            "orders",
            partial(KafkaMicroBatches, context),
            self.bronze,
            clock=lambda: NOON + timedelta(seconds=self.now),
            monotonic=lambda: self.now,
            limit=limit,
            waits=lambda _: self.check(),
        )

    def sleep(self, seconds: float) -> None:
        """Moves the clock for the test's own thread; threads that other tests left really sleep."""
        if threading.current_thread() is self.thread:
            self.now += seconds
        else:
            _SLEEP(seconds)


_SLEEP = time.sleep


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    place = Place(tmp_path)
    monkeypatch.setattr(batches, "Cluster", lambda *_: place.brokers)
    monkeypatch.setattr(batches, "KafkaReader", lambda *_: place.reading)
    monkeypatch.setattr(time, "sleep", place.sleep)
    return place


def read_all(source: SourceLoop) -> None:
    while source.pending():
        assert source.ingest()
