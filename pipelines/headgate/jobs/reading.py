"""Opens the input of a job: the source of its pipeline, or its upstream tables."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

from pyspark.sql import SparkSession

from headgate.declaration.kinds import kind_of
from headgate.jobs.run import Run
from headgate.jobs.runtime import PipelineRuntime
from headgate.jobs.upstream import UpstreamTables
from headgate.sources.connector import connector_of
from headgate.sources.micro_batches import MicroBatchSource, SourceContext


def micro_batches(run: Run, waits: Callable[[str], None]) -> MicroBatchSource:
    """While a source does not answer, ``waits`` is called repeatedly with the reason."""
    if not run.writes_bronze:
        return UpstreamTables(run.runtime.upstream())
    task = run.task
    return open_source(
        *(run.spark, run.runtime, waits, run.clock), cores=task.cores, accept_gap=task.accept_gap
    )


def open_source(
    spark: SparkSession,
    runtime: PipelineRuntime,
    waits: Callable[[str], None],
    clock: Callable[[], datetime],
    *,
    cores: int = 2,
    accept_gap: bool = False,
    monotonic: Callable[[], float] = time.monotonic,
) -> MicroBatchSource:
    """The source of a pipeline whose tables are open. Raises SourceError."""
    pipeline = runtime.pipeline
    context = SourceContext(
        *(spark, pipeline.name, pipeline.file, pipeline.source, runtime.bronze),
        tables={kind_of(kept.table.name).name: kept.table for kept in runtime.kept},
        waits=waits,
        clock=clock,
        cores=cores,
        accept_gap=accept_gap,
        monotonic=monotonic,
    )
    return connector_of(pipeline.source).micro_batches(context)
