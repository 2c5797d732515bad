"""The text of the metrics, in the format of Prometheus."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from headgate.insight.metrics.definitions import METRICS
from headgate.insight.metrics.histograms import Histograms
from headgate.insight.metrics.samples import Sample

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
