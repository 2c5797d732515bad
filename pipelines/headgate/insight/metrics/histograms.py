"""The histograms of a process: they begin empty, and are observed as commits are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import Histogram, Metric, disable_created_metrics

from headgate.insight.metrics.definitions import METRICS

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
