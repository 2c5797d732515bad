"""Opens the input of a job: the sources of its pipeline, or its upstream tables."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

from pyspark.sql import SparkSession

from headgate.declaration.kinds import kind_of
from headgate.jobs.pipeline_sources import PipelineSources
from headgate.jobs.run import Run
from headgate.jobs.runtime import PipelineRuntime
from headgate.jobs.upstream import UpstreamTables
from headgate.sources.contract import connector_of
from headgate.sources.micro_batches import MicroBatchSource, SourceContext


def micro_batches(run: Run, waits: Callable[[str], None]) -> MicroBatchSource:
    """While a source does not answer, ``waits`` is called repeatedly with the reason."""
    if not run.writes_bronze:
        return UpstreamTables(run.runtime.upstream())
    task = run.task
    return open_sources(
        *(run.spark, run.runtime, waits, run.clock),
        cores=task.cores,
        accept_gap=task.accept_gap,
        check=run.control.check_requests,
    )


def open_sources(
    spark: SparkSession,
    runtime: PipelineRuntime,
    waits: Callable[[str], None],
    clock: Callable[[], datetime],
    *,
    cores: int = 2,
    accept_gap: bool = False,
    monotonic: Callable[[], float] = time.monotonic,
    check: Callable[[], None] = lambda: None,
) -> PipelineSources:
    """The sources of a pipeline whose tables are open. Raises SourceError."""
    pipeline = runtime.pipeline
    opened: dict[str, MicroBatchSource] = {}
    try:
        for name, source in pipeline.sources.items():
            context = SourceContext(
                *(spark, pipeline.name, pipeline.file, source, runtime.bronze[name]),
                tables={kind_of(s.table.name).name: s.table for s in runtime.kept[name]},
                waits=waits,
                clock=clock,
                cores=cores,
                accept_gap=accept_gap,
                monotonic=monotonic,
                check=check,
            )
            opened[name] = connector_of(source).micro_batches(context)
    except BaseException:
        for each in opened.values():
            each.close()
        raise
    return PipelineSources(opened, runtime.bronze, clock)
