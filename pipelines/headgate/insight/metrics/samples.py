"""Samples and histograms of metrics as plain values, and as text in the format of Prometheus."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from prometheus_client import (
    CollectorRegistry,
    Histogram,
    Metric,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from headgate.insight.metrics.definitions import METRICS


@dataclass(frozen=True)
class Sample:
    """``labels`` are the values of the metric's labels, in their order."""

    metric: str
    labels: tuple[str, ...]
    value: float


@dataclass
class Samples:
    """Collects the samples of one pipeline. A metric or a label that is not declared raises
    KeyError: only metrics that the docs name are served."""

    pipeline: str
    found: list[Sample] = field(default_factory=list)

    def add(self, metric: str, value: float | bool | datetime | None, **labels: str) -> None:
        """A time becomes seconds since 1970. None means that the value is unknown: nothing is
        added."""
        if value is None:
            return
        declared = METRICS[f"headgate_{metric}"]
        if set(labels) != set(declared.labels):
            raise KeyError(f"{declared.name} has the labels {', '.join(declared.labels)}")
        number = value.timestamp() if isinstance(value, datetime) else float(value)
        values = (self.pipeline, *(labels[name] for name in declared.labels))
        self.found.append(Sample(declared.name, values, number))

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.found)


Observed = Callable[[str, tuple[str, ...], float], None]
"""Called with a metric's name, the values of its labels, and what was observed."""

# Otherwise each histogram has one more series, which only shows when this process began.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Histograms:
    """One thread observes; any thread may collect. ``listeners`` are called with each
    observation."""

    def __init__(self) -> None:
        self.listeners: list[Observed] = []
        self._found = {
            name: Histogram(
                name, metric.help, metric.all_labels, registry=None, buckets=metric.buckets
            )
            for name, metric in METRICS.items()
            if metric.type == "histogram"
        }

    def begin(self, metric: str, *labels: str) -> None:
        """Serve a series from 0 on, before anything is observed."""
        self._found[f"headgate_{metric}"].labels(*labels)

    def observe(self, metric: str, value: float, *labels: str) -> None:
        """``labels`` begin with the pipeline's name."""
        name = f"headgate_{metric}"
        self._found[name].labels(*labels).observe(value)
        for listener in self.listeners:
            listener(name, labels, value)

    def collect(self) -> Iterator[Metric]:
        for histogram in self._found.values():
            yield from histogram.collect()


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def text_of(samples: Sequence[Sample], histograms: Histograms) -> bytes:
    """All samples with their help texts."""
    registry = CollectorRegistry()
    registry.register(_Found(samples, histograms))
    return generate_latest(registry)


class _Found(Collector):
    def __init__(self, samples: Sequence[Sample], histograms: Histograms) -> None:
        self._samples, self._histograms = samples, histograms

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        by_metric: dict[str, list[Sample]] = defaultdict(list)
        for sample in self._samples:
            by_metric[sample.metric].append(sample)
        for name, found in by_metric.items():
            yield _family(name, found)
        yield from self._histograms.collect()


def _family(name: str, samples: Iterable[Sample]) -> Metric:
    declared = METRICS[name]
    kind = CounterMetricFamily if declared.type == "counter" else GaugeMetricFamily
    family = kind(name, declared.help, labels=declared.all_labels)
    for sample in samples:
        family.add_metric(sample.labels, sample.value)
    return family
