"""Headgate over the slices, one a batch: python -m tests.benchmarks.headgate_job FOLDER."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from headgate.declaration.load import load
from headgate.jobs.driver import Driver
from headgate.jobs.progress import Progress
from headgate.jobs.task import Task
from headgate.jvm import held_in_memory_count, java
from tests.benchmarks.measuring import Meter

DECLARATION = """
pipeline: bench
sources:
  bids:
    files: {path: landing, format: json, max_files_per_batch: 1}
    record:
      event_id: [event_id]
      event_time: {column: event_time}
      duplicates: {within: 10 minutes}
      schema:
        event_id: string
        auction: bigint
        bidder: bigint
        price: decimal(18,2)
        channel: string
        url: string
        event_time: timestamp
silver:
  clean_bids:
    from: bids
    columns: {channel: lower(channel)}
    where: auction is not null
gold:
  bids_per_minute:
    from: clean_bids
    window: {tumbling: 1 minute}
    by: [auction]
    measures: {bids: count(*), volume: sum(price), top: max(price)}
    allowed_lateness: 10 seconds
"""


def main(folder: Path) -> None:
    declaration = folder / "bench.yml"
    declaration.write_text(DECLARATION)
    meter = Meter()
    meter.start()

    def report(progress: Progress) -> None:
        if progress.state == "running":
            meter.lap(compilations=_compilations(), persisted=_persisted())

    task = Task(load(declaration), str(folder / "lake"), once=True, cores=2)
    Driver(task, report).run()


def _compilations() -> int:
    codegen = java(_session()).org.apache.spark.metrics.source.CodegenMetrics
    return int(codegen.METRIC_COMPILATION_TIME().getCount())


def _persisted() -> int:
    return held_in_memory_count(_session())


def _session() -> SparkSession:
    """The driver's; the active one is a thread's own."""
    spark = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    assert spark is not None
    return spark


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)
