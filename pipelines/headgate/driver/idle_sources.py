"""Decides which sources are idle: tables that read several sources do not wait for them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from datetime import datetime

from headgate.declaration.kinds import INPUTS
from headgate.driver.runtime import PipelineRuntime
from headgate.flow.sources.idling import Idling
from headgate.lake.control.driver_reports import SourceReport


class IdleSources:
    """Watches the sources of each input log that have ``idle_after``. ``monotonic`` is in
    seconds."""

    def __init__(
        self, runtime: PipelineRuntime, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._runtime, self._monotonic = runtime, monotonic
        graph, sources = runtime.graph, runtime.pipeline.sources
        self._timers = {
            node.name: {
                name: Idling[str](after)
                for name in graph.sources_of(node.path)
                if (after := sources[name].idle_after) is not None
            }
            for node in graph.of(INPUTS)
        }

    @property
    def watches(self) -> bool:
        """Whether there is anything to decide."""
        return any(self._timers.values())

    def step(
        self, read: Mapping[str, int], reports: Mapping[str, SourceReport], now: datetime
    ) -> bool:
        """Decide on the sources that have become idle. ``read`` are the records that bronze has of
        each source. Returns whether there was one.

        Raises CommitRefusedError, FencedError.
        """
        waits = {name for name, report in reports.items() if _has_input(report)}
        found = [
            self._step_of(log, timers, read, waits, now)
            for log, timers in self._timers.items()
            if timers
        ]
        return any(found)

    def _step_of(
        self,
        log: str,
        timers: Mapping[str, Idling[str]],
        read: Mapping[str, int],
        waits: Collection[str],
        now: datetime,
    ) -> bool:
        runtime, path = self._runtime, INPUTS.path(log)
        own = {source: read.get(source, 0) for source in runtime.graph.sources_of(path)}
        for timer in timers.values():
            timer.observe(self._monotonic(), own)
        silent = {name for name, timer in timers.items() if name in timer.idle(own)}
        if not (silent := silent - {*waits}) or not runtime.undecidable.isdisjoint(own):
            return False
        known = {*runtime.control.refresh().idle(log)}
        if silent <= known:
            return False
        return runtime.decide_idle(log, sorted(known | silent), now)


def _has_input(report: SourceReport) -> bool:
    """Whether a source has, or may have, records that bronze lacks."""
    is_known = report.backlog is not None and report.outage is None and report.failure is None
    return not is_known or bool(report.backlog and report.backlog.count)
