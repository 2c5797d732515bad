"""The stream: its condition, its jobs and its backlog, from documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import ClassVar, get_args

from headgate.insight.metrics.definitions import MOST_PARTITIONS, OTHERS
from headgate.insight.metrics.parts.contract import Reading, WatchedPipeline
from headgate.insight.metrics.samples import Samples
from headgate.insight.status.health import HealthContext
from headgate.insight.status.report import stream_status
from headgate.insight.status.trend import trend_of
from headgate.lake.control.driver_reports import (
    LagSample,
    PartitionBacklog,
    SourceProgress,
    with_sample,
)
from headgate.supervision.job_state import JobState, probe
from headgate.supervision.supervisor import StreamCondition


class StreamPart(Reading):
    """``files_read`` returns the number of landing files of a source that bronze has ingested."""

    name: ClassVar[str] = "stream"
    every: ClassVar[float] = 2.0

    def __init__(self, place: WatchedPipeline, files_read: Callable[[str], int]) -> None:
        self._place, self._files_read = place, files_read
        self._files: dict[str, tuple[LagSample, ...]] = {}

    def read(self, samples: Samples, now: datetime) -> None:
        declared, layout = self._place.declared, self._place.layout
        jobs = probe(layout, now)
        status = stream_status(layout, jobs, now)
        health = HealthContext(declared, layout, jobs, now)
        for condition in get_args(StreamCondition):
            samples.add("condition", condition == status.condition, condition=condition)
        samples.add("meant_to_run", health.is_meant_to_run)
        samples.add("running", status.condition == "running")
        samples.add("paused", status.paused is not None)
        samples.add("restarts_total", status.restarts)
        for job in jobs:
            samples.add("trouble", job.trouble is not None and job.is_alive, driver=job.job)
            if job.is_alive and job.load_outage is not None:
                samples.add("load_outage_timestamp_seconds", job.load_outage.since)
            samples.add("up_to_date_timestamp_seconds", job.updated or job.since, driver=job.job)
            for name, stuck in (job.stuck or {}).items() if job.is_alive else ():
                since = datetime.fromisoformat(stuck["since"])
                samples.add("publication_stuck_timestamp_seconds", since, publication=name)
            for source, each in job.sources.items():
                self._add_source(samples, job, source, each)
        reader = next((job for job in jobs if "bronze" in job.layers), None)
        for source in declared.sources:
            is_pressed = reader is not None and self._is_pressed(reader, source, now)
            samples.add("backpressure", is_pressed, source=source)

    def _add_source(
        self, samples: Samples, job: JobState, source: str, progress: SourceProgress
    ) -> None:
        if job.is_alive and (outage := progress.outage) is not None:
            samples.add("outage_timestamp_seconds", outage.since, source=source)
        if job.is_alive and (failure := progress.failure) is not None:
            samples.add("source_failed_timestamp_seconds", failure.since, source=source)
        if (backlog := progress.backlog) is None:
            return
        if backlog.unit == "batches":
            samples.add("backlog_batches", backlog.count, source=source, driver=job.job)
        elif backlog.unit == "files":
            samples.add("backlog_files", backlog.count, source=source)
            samples.add("backlog_bytes", backlog.size, source=source)
        for name, part in capped(backlog.partitions).items():
            where = {"source": source, "partition": name}
            samples.add("backlog_records", part.records, **where)
            samples.add("backlog_age_seconds", part.seconds, **where)

    def _is_pressed(self, reader: JobState, source: str, now: datetime) -> bool:
        progress = reader.sources.get(source, SourceProgress())
        if not reader.is_alive or progress.backlog is None or reader.paused:
            self._files.pop(source, None)
            return False
        found = progress.samples
        if progress.backlog.unit == "files":
            read = LagSample(now, progress.backlog.count, self._files_read(source))
            self._files[source] = found = with_sample(self._files.get(source, ()), read)
        trend = trend_of(found)
        return trend is not None and trend.trend != "catching up"


def capped(partitions: Mapping[str, PartitionBacklog]) -> Mapping[str, PartitionBacklog]:
    """At most ``MOST_PARTITIONS`` entries. If there are more partitions, the last entry stands for
    all that remain, with the sum of their records and the age of the oldest."""
    if len(partitions) <= MOST_PARTITIONS:
        return partitions
    names = sorted(partitions, key=_by_number)
    kept = {name: partitions[name] for name in names[: MOST_PARTITIONS - 1]}
    rest = [partitions[name] for name in names[MOST_PARTITIONS - 1 :]]
    records, seconds = sum(p.records for p in rest), max(p.seconds for p in rest)
    return {**kept, OTHERS: PartitionBacklog(records, seconds)}


def _by_number(name: str) -> tuple[str, int, str]:
    """The sort key of ``topic/partition``: the name of the topic, then the number of the
    partition."""
    topic, _, number = name.rpartition("/")
    return topic, int(number) if number.isdecimal() else -1, name
