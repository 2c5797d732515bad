"""The status document of a job. It is replaced after every micro-batch and, in between, every few
seconds."""

from __future__ import annotations

import os
import socket
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import BRONZE, GOLD, SILVER, kind_of
from headgate.declaration.model import Pipeline
from headgate.driver.runtime import PipelineRuntime
from headgate.errors import HeadgateError, joined_messages
from headgate.lake.control.driver_reports import (
    LagSample,
    Outage,
    SourceProgress,
    SourceReport,
    about_source,
    with_sample,
)
from headgate.lake.control.driver_requests import stop_requested
from headgate.lake.storage.documents import encoded, read_document, write_document
from headgate.lake.storage.layout import Layout
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import time_of

IDLE_WRITES = timedelta(seconds=5)
"""The shortest time between two replacements of the document while no batch ends."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass
class JobProgress:
    """``seconds`` and ``rows`` describe the last batch. ``sources`` are all sources of the pipeline
    by name. ``load_outage``: the history of a load does not answer; the sources do not wait for it.
    ``trouble`` is a message about what fails now: a source, a load, a sink, a savepoint, a damaged
    table. ``state`` is ``finished`` after a run with ``--once`` that processed everything,
    ``stopped`` after a stop request. ``totals`` are cumulative counts by table. ``changed`` is the
    time of gold's last change, from its commits. ``updated`` is when a batch last ended, or all
    input of the sources that can be read was processed; an earlier driver may have recorded it.
    ``paused`` is the start of the pause. ``stuck`` are the publications that fail, by name. The
    stream's thread updates the progress after a batch, the supervising thread in between."""

    pipeline: str
    job: str
    epoch: int
    since: datetime
    layout: Layout
    state: str = "running"
    batches: int = 0
    rows: int = 0
    seconds: float = 0.0
    sources: dict[str, SourceProgress] = field(default_factory=dict)
    load_outage: Outage | None = None
    trouble: str | None = None
    changed: datetime | None = None
    updated: datetime = field(default_factory=_now)
    totals: dict[str, dict[str, int]] = field(default_factory=dict)
    paused: datetime | None = None
    stuck: dict[str, dict[str, str]] = field(default_factory=dict)
    clock: Callable[[], datetime] = _now

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._written = self._worked = self.since
        self._read = 0
        self._also: str | None = None
        self._known: tuple[Any, ...] = self._news()

    @staticmethod
    def begin(
        pipeline: Pipeline,
        layout: Layout,
        job: str,
        epoch: int,
        runtime: PipelineRuntime,
        **more: Any,
    ) -> JobProgress:
        """The progress of a job that is about to continue from the tables' positions."""
        progress = JobProgress(pipeline.name, job, epoch, datetime.now(UTC), layout, **more)
        progress.updated = _updated_before_crash(layout, job) or progress.since
        progress._take(runtime)
        progress._read = progress.read
        held = runtime.held
        of_sources = ((name, each) for name, each in held.items() if name in runtime.bronze)
        progress._report({n: SourceReport(failure=each.failure) for n, each in of_sources})
        progress._write()
        return progress

    @property
    def read(self) -> int:
        """The number of records that bronze has read."""
        bronze = (total for path, total in self.totals.items() if kind_of(path) == BRONZE)
        return sum(total.get("read", 0) for total in bronze)

    def caught_up(self, runtime: PipelineRuntime) -> None:
        """Update the totals from the tables, which have caught up without a batch of this run."""
        with self._lock:
            self._take(runtime)

    def sources_ready(self, reports: Mapping[str, SourceReport]) -> None:
        """Record that the sources were asked, and the first batch can be planned."""
        with self._lock:
            self._report(reports)
            self._write()

    def batch_done(self, runtime: PipelineRuntime, reports: Mapping[str, SourceReport]) -> None:
        """Update the progress from the tables' states after a batch, of whichever source."""
        with self._lock:
            self._take(runtime)
            read, now = self.read, self.clock()
            self.batches += 1
            # The count is lower after a rebuild of bronze has replaced the current table.
            self.rows, self._read = max(read - self._read, 0), read
            self.seconds = (now - self._worked).total_seconds()
            self.updated = self._worked = now
            self._report(reports)
            self._sample(now)
            self._write()

    def idle(
        self,
        reports: Mapping[str, SourceReport],
        runtime: PipelineRuntime | None,
        paused: datetime | None = None,
        also: str | None = None,
        load_outage: Outage | None = None,
    ) -> bool:
        """Update the progress between batches, or while a batch runs. In the second case
        ``runtime`` is None, because the batch uses the tables. ``also`` is the trouble of sinks and
        schedules, for which the tables do not wait. Cheap; the number of writes is bounded, however
        often this is called.

        Returns whether a pause, a failure of a source, or other trouble than an outage has begun or
        ended, or the number of files set aside has changed.
        """
        now = self.clock()
        with self._lock:
            was_away = self._away
            self.paused, self.load_outage, self._also = paused, load_outage, also
            self._report(reports)
            before, self._known = self._known, self._news()
            news = self._known != before
            # The records of a running batch are read but not in gold yet.
            if runtime is not None and self._is_up_to_date:
                self.updated = self._worked = now
            if not self._is_old(now) and not news and self._away == was_away:
                return False
            if runtime is not None:
                self._take(runtime)
                self._sample(now)
            self._write()
            return news

    def waits(self, source: str, outage: Outage) -> None:
        """Record that a source does not answer. As cheap as ``idle``."""
        with self._lock:
            before = self.sources.get(source, SourceProgress())
            self._report({source: SourceReport(before.backlog, outage)})
            if before.outage is None or self._is_old(self.clock()):
                self._write()

    def _report(self, reports: Mapping[str, SourceReport]) -> None:
        """Samples from before an outage or a failure of the source are not compared with later
        ones."""
        for name, report in reports.items():
            held = replace(self.sources.get(name, SourceProgress()), **vars(report))
            self.sources[name] = held if held.is_readable else replace(held, samples=())
        now = self.clock()
        messages = list[str]()
        for name, source in self.sources.items():
            why = source.outage.said(now) if source.outage else None
            if source.failure:  # maybe of an outage for which a bounded run waits no longer
                why = source.failure.reason
            said = why, source.remark
            messages += [about_source(name, each, self.sources) for each in said if each]
        load = self.load_outage.said(now) if self.load_outage else None
        self.trouble = joined_messages((*messages, load, self._also))

    @property
    def _away(self) -> frozenset[str]:
        """The sources that do not answer, and "" for the history of a load."""
        away = {name for name, source in self.sources.items() if source.outage}
        return frozenset(away | {""} if self.load_outage else away)

    @property
    def _is_up_to_date(self) -> bool:
        """Whether all input is processed of the sources that can be read; False if none can."""
        found = [source for source in self.sources.values() if source.is_readable]
        return bool(found) and all(each.backlog and not each.backlog.count for each in found)

    def _news(self) -> tuple[Any, ...]:
        """What is reported at once if it changes, except outages, which have lines of their own."""
        each = {
            (name, source.failure is None, source.remark is None, source.set_aside)
            for name, source in self.sources.items()
            if source.failure or source.remark or source.set_aside
        }
        return self._also is None, self.paused, each

    def _is_old(self, now: datetime) -> bool:
        """Whether the status has to be written again, also after the clock was set back."""
        return abs(now - self._written) >= IDLE_WRITES

    def finish(self, runtime: PipelineRuntime, *, finished: bool) -> None:
        """Record a normal end: all input is processed (``finished``), or a stop was requested."""
        with self._lock:
            self._take(runtime)
            self.state = "finished" if finished else "stopped"
            self._also = self.load_outage = None
            # What a person has to repair stays in the last status.
            ended = {
                name: SourceReport(each.backlog, failure=each.failure, set_aside=each.set_aside)
                for name, each in self.sources.items()
            }
            self._report(ended)
            self._write()

    def _take(self, runtime: PipelineRuntime) -> None:
        graph = graph_of(runtime.pipeline)
        every = graph.of(BRONZE, SILVER, GOLD)
        tables = [node for node in every if node.path not in runtime.damaged]
        self.totals = {n.path: dict(runtime.table(n.path).refresh().total) for n in tables}
        quarantined = Counter[str]()
        for node in tables:  # the same records are invalid for each silver table
            if node.kind != SILVER:
                continue
            source, count = graph.numbered_by(node.path).name, self.totals[node.path]
            quarantined[source] = max(quarantined[source], count.get("quarantined", 0))
        for name in runtime.bronze:
            self.sources.setdefault(name, SourceProgress())
            if BRONZE.path(name) in runtime.damaged:
                continue
            bronze = runtime.newest(BRONZE.path(name)).refresh()
            watermark = BronzePayload.of(bronze).watermark
            self.sources[name] = replace(
                self.sources[name],
                n=bronze.n,
                watermark=None if watermark is None else time_of(watermark),
                quarantined=quarantined[name],
            )
        states = (runtime.table(node.path).state for node in tables if node.kind == GOLD)
        changes = [state.changed_at for state in states if state.changed_at is not None]
        self.changed = time_of(max(changes)) if changes else None

    def _sample(self, now: datetime) -> None:
        """Call this when backlogs and totals are of the same moment. Samples from before a pause or
        a replacement of bronze are not compared with later ones."""
        for name, source in self.sources.items():
            read = self.totals.get(BRONZE.path(name), {}).get("read", 0)
            samples = source.samples
            if self.paused or (samples and read < samples[-1].read):
                samples = ()
            behind = source.backlog if source.is_readable and not self.paused else None
            if behind is not None and behind.unit == "records":
                samples = with_sample(samples, LagSample(now, behind.count, read))
            self.sources[name] = replace(source, samples=samples)

    def _write(self) -> None:
        self._written = self.clock()
        path = Layout.document(f"status-{self.job}")
        write_document(self.layout.storage, path, self.document())

    def document(self) -> dict[str, Any]:
        content = {k: v for k, v in encoded(self).items() if k not in ("layout", "clock")}
        return content | {"pid": os.getpid(), "host": socket.gethostname()}


def _updated_before_crash(layout: Layout, job: str) -> datetime | None:
    """The ``updated`` of the job's last driver if it crashed, so that a driver that crashes
    repeatedly is not reported as fresh. After a normal end, and after one that a person has asked
    for, the time starts again."""
    try:
        before = read_document(layout.storage, Layout.document(f"status-{job}"))
    except HeadgateError:  # a damaged document is replaced
        return None
    if before is None or before["state"] != "running" or stop_requested(layout, before["epoch"]):
        return None
    return datetime.fromisoformat(before["updated"])
