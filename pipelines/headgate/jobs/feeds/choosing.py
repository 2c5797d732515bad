"""Which feed a job has."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from pyspark.sql import SparkSession

from headgate.jobs.feeds.feed import Feed
from headgate.jobs.feeds.files import FilesFeed
from headgate.jobs.feeds.kafka import KafkaFeed, Surroundings
from headgate.jobs.feeds.upstream import UpstreamFeed
from headgate.jobs.runtime import PipelineRuntime
from headgate.jobs.task import Task
from headgate.sources.files.intake import FilesIntake


def feed_of(
    task: Task,
    spark: SparkSession,
    runtime: PipelineRuntime,
    waits: Callable[[str], None],
    now: Callable[[], datetime],
) -> Feed:
    """``waits`` is told, again and again, what keeps a source from answering."""
    if "bronze" not in task.layers:
        return UpstreamFeed(runtime.upstream())
    if runtime.files_log is None:
        around = Surroundings(waits, now, cores=task.cores, accept_gap=task.accept_gap)
        return KafkaFeed(spark, task.pipeline, runtime.bronze, around)
    runtime.files_log.load()
    files = FilesIntake(task.pipeline.source.reads, runtime.files_log)
    return FilesFeed(spark, files, runtime.bronze, now)
