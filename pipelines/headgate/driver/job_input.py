"""The input of a job: the sources of its pipeline, or its upstream tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Protocol

from pyspark.sql import SparkSession

from headgate.declaration.contracts.source import connector_of
from headgate.declaration.kinds import kind_of
from headgate.driver.run import DriverRun
from headgate.driver.runtime import PipelineRuntime
from headgate.driver.source_loop import SourceLoop
from headgate.flow.sources.micro_batches import SourceContext
from headgate.lake.control.driver_reports import (
    Backlog,
    Outage,
    SourceReport,
    combined_outage,
)
from headgate.lake.control.driver_requests import SkipRequest
from headgate.lake.tables.state import State
from headgate.lake.tables.table import Table

POLL = 0.25  # seconds between reads of the upstream tables


class JobInput(Protocol):
    """The input of a job, as its supervising thread and its stream's thread use it
    (``SourceLoop``)."""

    @property
    def every(self) -> float: ...
    def poll(self, *, final: bool) -> None: ...
    def pending(self) -> int: ...
    def ingest(self) -> bool: ...
    def backlog(self) -> Backlog: ...
    def reports(self) -> dict[str, SourceReport]: ...
    def has_ingested_all(self) -> bool: ...
    @property
    def outage(self) -> Outage | None: ...
    def skip(self, wanted: SkipRequest) -> None: ...
    def batch_took(self, took: timedelta) -> None: ...
    def close(self) -> None: ...


def open_input(run: DriverRun, waits: Callable[[str, Outage], None]) -> JobInput:
    """Blocks until each source has answered. While one does not, ``waits`` is called repeatedly
    with its name."""
    if not run.writes_bronze:
        return UpstreamTables(run.runtime.upstream(), tuple(run.runtime.bronze))
    task = run.task
    return open_sources(
        *(run.spark, run.runtime, run.clock),
        cores=task.cores,
        accept_gap=task.accept_gap,
        once=task.once,
        check=run.control.check_requests,
        waits=waits,
    )


def open_sources(
    spark: SparkSession,
    runtime: PipelineRuntime,
    clock: Callable[[], datetime],
    *,
    cores: int = 2,
    accept_gap: bool = False,
    once: bool = False,
    monotonic: Callable[[], float] = time.monotonic,
    check: Callable[[], None] = lambda: None,
    waits: Callable[[str, Outage], None] = lambda *_: None,
) -> PipelineSources:
    """The sources of a pipeline whose tables are open. A source that does not answer is tried again
    for ever, or with ``once`` for as long as its kind says. Raises SourceError, and what ``waits``
    and ``check`` raise."""
    pipeline = runtime.pipeline
    opened: dict[str, SourceLoop] = {}
    try:
        for name, source in pipeline.sources.items():
            connector, bronze = connector_of(source), runtime.bronze[name]
            context = SourceContext(
                *(spark, pipeline.name, pipeline.file, source),
                tables={kind_of(s.table.name).name: s.table for s in runtime.kept[name]},
                epoch=bronze.table.epoch,
                clock=clock,
                cores=cores,
                accept_gap=accept_gap,
                monotonic=monotonic,
                check=check,
            )
            opened[name] = loop = SourceLoop(
                partial(connector.micro_batches, context),
                *(bronze, clock, monotonic),
                limit=connector.unreachable_after(source.reads) if once else None,
                waits=partial(waits, name),
            )
            loop.begin()
    except BaseException:
        for each in opened.values():
            each.close()
        raise
    return PipelineSources(opened, runtime.bronze, clock)


class BatchTable(Protocol):
    """The part of a bronze stage that ``PipelineSources`` uses."""

    @property
    def table(self) -> Table: ...

    def skip(self, now: datetime) -> State:
        """Commit the next batch without a record, because the source has none for it."""


class PipelineSources:
    """A batch id belongs to the whole pipeline: the bronze table of every source has a commit for
    it, perhaps without a record. If a crash left some tables a batch behind, they catch up before
    the next batch begins."""

    def __init__(
        self,
        sources: Mapping[str, SourceLoop],
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

    def reports(self) -> dict[str, SourceReport]:
        return {
            name: SourceReport(
                source.backlog(),
                source.outage,
                remark=source.remark,
                set_aside=source.set_aside,
            )
            for name, source in self.sources.items()
        }

    def has_ingested_all(self) -> bool:
        return all(source.has_ingested_all() for source in self.sources.values())

    @property
    def outage(self) -> Outage | None:
        return combined_outage(source.outage for source in self.sources.values())

    def skip(self, wanted: SkipRequest) -> None:
        if (source := self.sources.get(wanted.source)) is not None:
            source.skip(wanted)

    def batch_took(self, took: timedelta) -> None:
        for source in self.sources.values():
            source.batch_took(took)

    def close(self) -> None:
        for source in self.sources.values():
            source.close()


class UpstreamTables:
    """``tables`` are separate readers, because threads do not share tables. ``sources`` are the
    names of the pipeline's sources."""

    every = POLL
    outage: Outage | None = None

    def __init__(self, tables: Sequence[Table], sources: Sequence[str]) -> None:
        self._tables, self._sources = tables, sources
        self._n = self._ingested = 0

    def poll(self, *, final: bool) -> None:
        self._n = min((table.refresh().n for table in self._tables), default=0)

    def pending(self) -> int:
        return int(self._n > self._ingested)

    def backlog(self) -> Backlog:
        return Backlog("batches", max(0, self._n - self._ingested))

    def reports(self) -> dict[str, SourceReport]:
        return {name: SourceReport(self.backlog()) for name in self._sources}

    def ingest(self) -> bool:
        self._ingested = self._n
        return True

    def has_ingested_all(self) -> bool:
        return self._ingested >= self._n

    def skip(self, wanted: SkipRequest) -> None:
        return

    def batch_took(self, took: timedelta) -> None:
        return

    def close(self) -> None:
        return
