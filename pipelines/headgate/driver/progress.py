"""The status document of a job. It is replaced after every micro-batch and, in between, every few
seconds."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from headgate.declaration.graph import graph_of
from headgate.declaration.kinds import BRONZE, GOLD, SILVER, kind_of
from headgate.declaration.model import Pipeline
from headgate.driver.runtime import PipelineRuntime
from headgate.errors import HeadgateError, joined_messages
from headgate.lake.control.driver_reports import (
    Backlog,
    LagSample,
    Outage,
    combined_outage,
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
    """``seconds`` and ``rows`` describe the last batch. ``outage`` is that of the sources, None
    while they answer. ``trouble`` is a message about what fails now: the sources, a sink, a
    savepoint, a damaged table. ``backlog`` is None until the source has answered. ``state`` is
    ``finished`` after a run with ``--once`` that processed everything, ``stopped`` after a stop
    request. ``totals`` are cumulative counts by table. ``changed`` is the time of gold's last
    change, from its commits. ``updated`` is when a batch last ended or all input was processed; an
    earlier driver may have recorded it. ``paused`` is the start of the pause. ``samples`` are
    measurements of a backlog in records. ``stuck`` are the publications that fail, by name.
    ``set_aside`` is the number of files that could not be read and wait for a person. The stream's
    thread updates the progress after a batch, the supervising thread in between."""

    pipeline: str
    job: str
    epoch: int
    since: datetime
    layout: Layout
    state: str = "running"
    n: int = 0
    batches: int = 0
    rows: int = 0
    seconds: float = 0.0
    backlog: Backlog | None = None
    outage: Outage | None = None
    trouble: str | None = None
    watermark: datetime | None = None
    changed: datetime | None = None
    updated: datetime = field(default_factory=_now)
    totals: dict[str, dict[str, int]] = field(default_factory=dict)
    paused: datetime | None = None
    samples: tuple[LagSample, ...] = ()
    stuck: dict[str, dict[str, str]] = field(default_factory=dict)
    set_aside: int = 0
    clock: Callable[[], datetime] = _now

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._written = self._worked = self.since
        self._read = 0
        self._also: str | None = None

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

    def source_ready(self, backlog: Backlog) -> None:
        """Record that the source has answered and the first batch can be planned."""
        with self._lock:
            self.backlog = backlog
            self._set_trouble(None, self._also)
            self._write()

    def batch_done(self, runtime: PipelineRuntime, backlog: Backlog) -> None:
        """Update the progress from the tables' states after a batch."""
        with self._lock:
            self._take(runtime)
            read, now = self.read, self.clock()
            self.batches += 1
            # The count is lower after a rebuild of bronze has replaced the current table.
            self.rows, self._read = max(read - self._read, 0), read
            self.seconds = (now - self._worked).total_seconds()
            self.backlog = backlog
            # An outage stays until ``idle`` tells its end: it may be that of another source.
            self._set_trouble(self.outage, self._also)
            self.updated = self._worked = now
            self._sample(now)
            self._write()

    def idle(
        self,
        backlog: Backlog,
        runtime: PipelineRuntime | None,
        outage: Outage | None = None,
        paused: datetime | None = None,
        also: str | None = None,
        set_aside: int = 0,
        of_load: Outage | None = None,
    ) -> bool:
        """Update the progress between batches, or while a batch runs. In the second case
        ``runtime`` is None, because the batch uses the tables. ``outage`` is that of the sources,
        ``of_load`` that of the history of a load, ``also`` the trouble of sinks and schedules, for
        which the tables do not wait. Cheap; the number of writes is bounded, however often this is
        called.

        Returns whether a pause, or other trouble than an outage, has begun or ended, or
        ``set_aside`` has changed.
        """
        now = self.clock()
        with self._lock:
            before = self._also is None, self.paused, self.set_aside
            news = (also is None, paused, set_aside) != before
            away = combined_outage((outage, of_load))
            moved = news or (away is None) != (self.outage is None)
            self.backlog, self.paused, self.set_aside = backlog, paused, set_aside
            self._set_trouble(away, also)
            # The records of a running batch are read but not in gold yet.
            if runtime is not None and not backlog.count and outage is None:
                self.updated = self._worked = now
            if not self._is_old(now) and not moved:
                return False
            if runtime is not None:
                self._take(runtime)
                self._sample(now)
            self._write()
            return news

    def waits(self, outage: Outage) -> None:
        """Record that a source does not answer. As cheap as ``idle``."""
        with self._lock:
            begins = self.outage is None
            self._set_trouble(outage, self._also)
            if begins or self._is_old(self.clock()):
                self._write()

    def _set_trouble(self, outage: Outage | None, also: str | None) -> None:
        """Samples from before an outage of the source are not compared with later ones."""
        self.outage, self._also = outage, also
        said = outage.said(self.clock()) if outage else None
        self.trouble = joined_messages((said, also))
        if outage is not None and not outage.is_of_load:
            self.samples = ()

    def _is_old(self, now: datetime) -> bool:
        """Whether the status has to be written again, also after the clock was set back."""
        return abs(now - self._written) >= IDLE_WRITES

    def finish(self, runtime: PipelineRuntime, *, finished: bool) -> None:
        """Record a normal end: all input is processed (``finished``), or a stop was requested."""
        with self._lock:
            self._take(runtime)
            self.state = "finished" if finished else "stopped"
            self._set_trouble(None, None)
            self._write()

    def _take(self, runtime: PipelineRuntime) -> None:
        bronze = runtime.head.table.refresh()
        self.n, watermark = bronze.n, BronzePayload.of(bronze).watermark
        self.watermark = None if watermark is None else time_of(watermark)
        graph = graph_of(runtime.pipeline)
        tables = graph.of(BRONZE, SILVER, GOLD)
        self.totals = {n.path: dict(runtime.table(n.path).refresh().total) for n in tables}
        states = (runtime.table(node.path).state for node in graph.of(GOLD))
        changes = [state.changed_at for state in states if state.changed_at is not None]
        self.changed = time_of(max(changes)) if changes else None

    def _sample(self, now: datetime) -> None:
        """Call this when backlog and totals are of the same moment. Samples from before a pause or
        a replacement of bronze are not compared with later ones."""
        read = self.read
        if self.paused or (self.samples and read < self.samples[-1].read):
            self.samples = ()
        if self.paused or (self.outage and not self.outage.is_of_load):
            return
        if self.backlog is not None and self.backlog.unit == "records":
            self.samples = with_sample(self.samples, LagSample(now, self.backlog.count, read))

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
