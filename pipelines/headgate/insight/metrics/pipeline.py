"""The samples of one pipeline, read part by part."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from headgate.declaration.model import Pipeline
from headgate.insight.metrics.limits import add_limits
from headgate.insight.metrics.parts.contract import Reading, WatchedPipeline
from headgate.insight.metrics.parts.gates import GatesPart
from headgate.insight.metrics.parts.ledger import LedgerPart
from headgate.insight.metrics.parts.savepoints import SavepointsPart
from headgate.insight.metrics.parts.state import StatePart
from headgate.insight.metrics.parts.stream import StreamPart
from headgate.insight.metrics.parts.tables import TablesPart
from headgate.insight.metrics.samples import Histograms, Sample, Samples
from headgate.insight.status.limits import Limits
from headgate.lake.storage.layout import Layout

log = logging.getLogger(__name__)


@dataclass
class _Turn:
    """The last reading of a part. ``found`` is empty if it could not be read."""

    part: Reading
    due: float = 0.0
    took: float = 0.0
    found: tuple[Sample, ...] = ()
    problem: str | None = None
    is_first: bool = field(default=True)


class PipelineReading:
    """Reads the samples of a pipeline. One thread calls ``refresh``. ``monotonic`` is a clock in
    seconds. ``is_current`` is False if the declaration has changed and cannot be loaded."""

    def __init__(
        self,
        declared: Pipeline,
        layout: Layout,
        histograms: Histograms,
        *,
        limits: Limits | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.declared, self.is_current = declared, True
        self._limits, self._monotonic = limits or Limits(), monotonic
        place = WatchedPipeline(declared, layout, self._limits)
        self._turns = [_Turn(part) for part in parts_of(place, histograms)]

    def refresh(self, now: datetime) -> tuple[Sample, ...]:
        """The samples now. A part that is not due keeps its samples. A part that cannot be read has
        none, and ``headgate_readable`` says so."""
        for turn in self._turns:
            if self._monotonic() >= turn.due:
                self._read(turn, now)
        samples = Samples(self.declared.name)
        samples.add("readable", self.is_current, part="declaration")
        samples.add("refreshed_timestamp_seconds", now)
        add_limits(samples, self.declared, self._limits)
        for turn in self._turns:
            samples.add("readable", turn.problem is None, part=turn.part.name)
            samples.add("reading_seconds_total", turn.took, part=turn.part.name)
            samples.found.extend(turn.found)
        return tuple(samples)

    def _read(self, turn: _Turn, now: datetime) -> None:
        began, samples = self._monotonic(), Samples(self.declared.name)
        try:
            turn.part.read(samples, now)
        # Whatever is wrong with a table or a document, the other parts are still read.
        except Exception as error:
            problem = f"{type(error).__name__}: {error}"
            if turn.problem != problem:
                log.warning("%s: %s cannot be read: %s", samples.pipeline, turn.part.name, problem)
            turn.found, turn.problem = (), problem
        else:
            turn.found, turn.problem = tuple(samples), None
        took = self._monotonic() - began
        turn.took += took
        every, share = turn.part.every, turn.part.share
        turn.due = began + max(every, took / share if share else 0.0)
        # The first reading opens files and imports packages: it says little about the next.
        if turn.is_first:
            turn.is_first, turn.due = False, began + every


def parts_of(place: WatchedPipeline, histograms: Histograms) -> Sequence[Reading]:
    """The parts of a reading, tables first: other parts use the versions that it has read."""
    tables = TablesPart(place, histograms)
    return (
        tables,
        StreamPart(place, tables.files_read),
        GatesPart(place, tables),
        StatePart(place, tables),
        SavepointsPart(place),
        LedgerPart(place, tables),
    )
