"""Opens the input of a job: the sources of its pipeline, or its upstream tables."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from functools import partial

from pyspark.sql import SparkSession

from headgate.declaration.kinds import kind_of
from headgate.driver.awaited_source import AwaitedSource
from headgate.driver.pipeline_sources import PipelineSources
from headgate.driver.run import Run
from headgate.driver.runtime import PipelineRuntime
from headgate.driver.upstream import UpstreamTables
from headgate.flow.sources.contract import connector_of
from headgate.flow.sources.micro_batches import MicroBatchSource, SourceContext
from headgate.lake.control.outage import Outage


def micro_batches(run: Run, waits: Callable[[Outage], None]) -> MicroBatchSource:
    """Blocks until each source has answered. While one does not, ``waits`` is called repeatedly."""
    if not run.writes_bronze:
        return UpstreamTables(run.runtime.upstream())
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
    waits: Callable[[Outage], None] = lambda _: None,
) -> PipelineSources:
    """The sources of a pipeline whose tables are open. A source that does not answer is tried again
    for ever, or with ``once`` for as long as its kind says. Raises SourceError, and what ``waits``
    and ``check`` raise."""
    pipeline = runtime.pipeline
    opened: dict[str, MicroBatchSource] = {}
    try:
        for name, source in pipeline.sources.items():
            connector = connector_of(source)
            context = SourceContext(
                *(spark, pipeline.name, pipeline.file, source, runtime.bronze[name]),
                tables={kind_of(s.table.name).name: s.table for s in runtime.kept[name]},
                clock=clock,
                cores=cores,
                accept_gap=accept_gap,
                monotonic=monotonic,
                check=check,
            )
            opened[name] = awaited = AwaitedSource(
                partial(connector.micro_batches, context),
                *(clock, monotonic),
                limit=connector.unreachable_after(source.reads) if once else None,
                waits=waits,
            )
            awaited.begin()
    except BaseException:
        for each in opened.values():
            each.close()
        raise
    return PipelineSources(opened, runtime.bronze, clock)
