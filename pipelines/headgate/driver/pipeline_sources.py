"""The sources of a pipeline, which share its batch ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Protocol

from headgate.driver.troubles import joined
from headgate.flow.sources.micro_batches import MicroBatchSource
from headgate.lake.control.backlog import Backlog
from headgate.lake.control.outage import Outage, combined
from headgate.lake.control.skip_request import SkipRequest
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table


class BatchTable(Protocol):
    """The part of a bronze stage that ``PipelineSources`` uses."""

    @property
    def table(self) -> Table: ...

    def skip(self, now: datetime) -> State:
        """Commit the next batch without a record, because the source has none for it."""


class PipelineSources(MicroBatchSource):
    """A batch id belongs to the whole pipeline: the bronze table of every source has a commit for
    it, perhaps without a record. If a crash left some tables a batch behind, they catch up before
    the next batch begins."""

    def __init__(
        self,
        sources: Mapping[str, MicroBatchSource],
        bronze: Mapping[str, BatchTable],
        clock: Callable[[], datetime],
    ) -> None:
        self.sources = sources
        self.every = min(source.every for source in sources.values())
        self._bronze, self._clock = bronze, clock

    def poll(self, *, final: bool) -> None:
        for source in self.sources.values():
            source.poll(final=final)

    def pending(self) -> int:
        return max(source.pending() for source in self.sources.values())

    def ingest(self) -> bool:
        reached = {name: self._bronze[name].table.refresh().n for name in self.sources}
        level = len(set(reached.values())) == 1
        behind = [name for name, n in reached.items() if level or n < max(reached.values())]
        idle = [name for name in behind if not self.sources[name].ingest()]
        if level and idle == behind:
            return False
        for name in idle:
            self._bronze[name].skip(self._clock())
        return True

    def backlog(self) -> Backlog:
        first, *others = (source.backlog() for source in self.sources.values())
        return Backlog("batches", self.pending()) if others else first

    def has_ingested_all(self) -> bool:
        return all(source.has_ingested_all() for source in self.sources.values())

    @property
    def outage(self) -> Outage | None:
        return combined(source.outage for source in self.sources.values())

    @property
    def remark(self) -> str | None:
        return joined(source.remark for source in self.sources.values())

    @property
    def set_aside(self) -> int:
        return sum(source.set_aside for source in self.sources.values())

    def skip(self, wanted: SkipRequest) -> None:
        if (source := self.sources.get(wanted.source)) is not None:
            source.skip(wanted)

    def batch_took(self, took: timedelta) -> None:
        for source in self.sources.values():
            source.batch_took(took)

    def close(self) -> None:
        for source in self.sources.values():
            source.close()
