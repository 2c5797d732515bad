from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.declaration.load import load
from headgate.insight.metrics.parts.contract import WatchedPipeline
from headgate.insight.metrics.pipeline import PipelineReading
from headgate.insight.metrics.samples import Histograms, Sample
from headgate.lake.storage.layout import Layout
from tests.unit.insight.ledger.conftest import DECLARATION, Lake

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
Values = dict[tuple[str, ...], float]


class Clock:
    """Monotonic seconds that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def values(samples: Iterable[Sample], metric: str) -> Values:
    """The values of a metric by its labels, without the pipeline."""
    return {s.labels[1:]: s.value for s in samples if s.metric == f"headgate_{metric}"}


def value(samples: Iterable[Sample], metric: str, *labels: str) -> float:
    return values(samples, metric)[labels]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def histograms() -> Histograms:
    return Histograms()


@pytest.fixture
def place(tmp_path: Path) -> WatchedPipeline:
    """The tiny pipeline, which has never run."""
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION)
    declared = load(file)
    return WatchedPipeline(declared, Layout.of(str(tmp_path / "lake"), declared.name))


@pytest.fixture
def lake(place: WatchedPipeline, tmp_path: Path) -> Lake:
    """The tables of ``place``, without a batch."""
    return Lake(tmp_path / "lake", place.declared)


def observed(histograms: Histograms, metric: str, *labels: str) -> tuple[float, float]:
    """How many observations there were, and their sum."""
    found = {
        (sample.name.rpartition("_")[2], *sample.labels.values()): sample.value
        for family in histograms.collect()
        for sample in family.samples
        if family.name == f"headgate_{metric}" and not sample.name.endswith("_bucket")
    }
    return found["count", "tiny", *labels], found["sum", "tiny", *labels]


def unreadable(samples: Iterable[Sample]) -> set[str]:
    return {labels[0] for labels, readable in values(samples, "readable").items() if not readable}


class Reading:
    def __init__(self, place: WatchedPipeline, histograms: Histograms, clock: Clock) -> None:
        self.clock = clock
        self._reading = PipelineReading(place.declared, place.layout, histograms, monotonic=clock)

    def __call__(self, now: datetime = NOW, *, after: float = 3600.0) -> tuple[Sample, ...]:
        """The samples that are read ``after`` seconds later; by default, every part is due then."""
        self.clock.now += after
        return self._reading.refresh(now)


@pytest.fixture
def read(place: WatchedPipeline, histograms: Histograms, clock: Clock) -> Reading:
    return Reading(place, histograms, clock)
