"""Reads the metrics of some pipelines again and again, on a thread of its own.

A scrape uses the samples that the thread keeps in memory. It reads no file, and the text is
rendered at most once for each reading.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from headgate.insight.metrics.pipeline import PipelineReading
from headgate.insight.metrics.samples import Histograms, Sample, text_of

EVERY = 1.0
"""Seconds between two readings."""

log = logging.getLogger(__name__)


def _now() -> datetime:
    return datetime.now(UTC)


class Collector:
    """``readings`` returns the current readings of the pipelines, whose names differ; the same
    objects as long as nothing has changed. ``samples`` and ``text`` may be called from any
    thread."""

    def __init__(
        self,
        histograms: Histograms,
        readings: Callable[[], Iterable[PipelineReading]],
        clock: Callable[[], datetime] = _now,
    ) -> None:
        self.histograms = histograms
        self._readings, self._clock = readings, clock
        self._samples: tuple[Sample, ...] = ()
        self._rendered: tuple[tuple[Sample, ...], bytes] | None = None
        self._lock = threading.Lock()

    @property
    def samples(self) -> tuple[Sample, ...]:
        """Those of the last reading."""
        return self._samples

    def refresh(self) -> None:
        """Read what is due."""
        now = self._clock()
        self._samples = tuple(s for reading in self._readings() for s in reading.refresh(now))

    def text(self) -> bytes:
        """The samples of the last reading, for Prometheus."""
        with self._lock:
            samples = self._samples
            if self._rendered is None or self._rendered[0] is not samples:
                self._rendered = samples, text_of(samples, self.histograms)
            return self._rendered[1]

    def keep(self, ended: threading.Event, between: Callable[[], None] = lambda: None) -> None:
        """Refresh until ``ended`` is set. ``between`` is called after each reading."""
        while not ended.is_set():
            try:
                self.refresh()
                between()
            except Exception:
                log.exception("metrics could not be read")
            ended.wait(EVERY)
