"""The engine over a real broker, in this process and without streaming: the test chooses when to
list and to process, and sets both clocks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from headgate.driver.pipeline_sources import source_loops
from headgate.driver.source_loop import SourceLoop
from headgate.lake.control.ownership import LAYERS
from headgate.setup.broker.running import Broker
from tests.oracle import SourceRecord
from tests.support.broker import consume_all
from tests.support.engine import Engine, begun


@dataclass
class KafkaEngine(Engine):
    """``moment`` is the time of the monotonic clock in seconds. :meth:`wait` advances it and
    ``now``."""

    accept_gap: bool = False
    moment: float = 0.0

    def start(self, layers: Sequence[str] = LAYERS) -> KafkaEngine:
        """Start a new driver: it has nothing in memory, fences every table and lists the
        brokers."""
        self.close()
        super().start(layers)
        return self

    def open_sources(self) -> dict[str, SourceLoop]:
        loops = source_loops(
            *(self.spark, self.layout, self.runtime, self.clock),
            accept_gap=self.accept_gap,
            monotonic=lambda: self.moment,
        )
        return begun(loops)

    def close(self) -> None:
        if hasattr(self, "sources"):
            for source in self.sources.values():
                source.close()

    def wait(self, seconds: float) -> None:
        self.moment += seconds
        self.now += timedelta(seconds=seconds)

    def list_new(self, source: str | None = None) -> bool:
        loop = self.sources[self.only(source)]
        loop.poll(final=False)
        return bool(loop.pending())

    def ingest(self, end: int | None = None, source: str | None = None) -> None:
        """Process one bronze batch of the records listed last, up to the declared limit."""
        assert end is None, "a batch of Kafka is bounded by the declaration"
        assert self.sources[self.only(source)].ingest(), "nothing was listed that is not read"

    def read_all(self, catch_up_every: int = 1) -> int:
        """Read everything batch by batch. Silver and gold catch up after every ``catch_up_every``
        batches. Returns the number of batches."""
        batches = 0
        while self.list_new():
            self.ingest()
            batches += 1
            if batches % catch_up_every == 0:
                self.catch_up()
        self.catch_up()
        return batches


def records_of(
    broker: Broker, topic: str, base: int = 0, read_at: datetime | None = None
) -> list[SourceRecord]:
    """The oracle's view of a topic: every committed record, as an independent client reads it.
    ``base`` is the number of its partition 0. Later timestamps than ``read_at`` count as
    ``read_at``."""
    found = []
    for record in consume_all(broker, topic):
        assert record.timestamp is not None
        seen = min(record.timestamp, read_at) if read_at else record.timestamp
        found.append(SourceRecord(base + record.partition, record.offset, record.value, seen))
    return found
