"""Sends the metrics by OTLP, if the extra ``otel`` is installed and its variables are set.

The names are those of Prometheus, so dashboards and alerts are the same. The SDK sends on a thread
of its own: an endpoint that does not answer delays nothing else.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from headgate.commands import install_extra
from headgate.insight.metrics.collector import Collector
from headgate.insight.metrics.definitions import METRICS, Metric

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Observation
    from opentelemetry.sdk.metrics import MeterProvider

ENDPOINTS = ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
ENDS_WITHIN = 1.0
"""Seconds that the end of a process waits for the last metrics to be sent."""
_UNITS = {"": "1", "seconds": "s", "bytes": "By", "ratio": "1"}


def is_asked(environment: Mapping[str, str]) -> bool:
    """Whether the standard variables ask for metrics by OTLP."""
    if environment.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    exporters = environment.get("OTEL_METRICS_EXPORTER", "otlp").split(",")
    named = "otlp" in (name.strip().lower() for name in exporters)
    return named and any(environment.get(name, "").strip() for name in ENDPOINTS)


def why_not(environment: Mapping[str, str]) -> str | None:
    """Why metrics are not sent although the variables ask for it; None if nothing prevents it."""
    if is_asked(environment) and find_spec("opentelemetry") is None:
        return (
            "metrics are not sent by OTLP: its packages are not installed; install them: "
            + install_extra("otel")
        )
    return None


class OtlpExport:
    """Sends what ``collector`` reads until ``close``. Takes endpoint, headers, interval and timeout
    from the environment. Raises what the SDK raises if a variable is wrong."""

    def __init__(self, collector: Collector, reader: Any = None) -> None:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.resources import Resource

        logging.getLogger("opentelemetry.util.re").addFilter(_without_values)
        self._collector = collector
        reader = reader or PeriodicExportingMetricReader(OTLPMetricExporter())
        resource = Resource.create({"service.name": "headgate"})
        self._provider: MeterProvider = MeterProvider(
            [reader], resource=resource, shutdown_on_exit=False
        )
        meter, self._histograms = self._provider.get_meter("headgate"), {}
        for metric in METRICS.values():
            unit = _UNITS.get(metric.unit, f"{{{metric.unit}}}")
            if metric.type == "histogram":
                self._histograms[metric.name] = meter.create_histogram(
                    *(metric.name, unit, metric.help),
                    explicit_bucket_boundaries_advisory=metric.buckets,
                )
                continue
            about = metric.name, [self._callback(metric)], unit, metric.help
            if metric.type == "counter":
                meter.create_observable_counter(*about)
            else:
                meter.create_observable_gauge(*about)
        collector.histograms.listeners.append(self._observe)

    def _callback(self, metric: Metric) -> Callable[[CallbackOptions], Iterable[Observation]]:
        from opentelemetry.metrics import Observation

        def observed(_: CallbackOptions) -> Iterable[Observation]:
            for sample in self._collector.samples:
                if sample.metric == metric.name:
                    labels = dict(zip(metric.all_labels, sample.labels, strict=True))
                    yield Observation(sample.value, labels)

        return observed

    def _observe(self, name: str, labels: tuple[str, ...], value: float) -> None:
        attributes = dict(zip(METRICS[name].all_labels, labels, strict=True))
        self._histograms[name].record(value, attributes)

    def close(self) -> None:
        """Send a last time. Blocks for at most ``ENDS_WITHIN`` seconds."""
        self._collector.histograms.listeners.remove(self._observe)
        ending = threading.Thread(
            target=self._provider.shutdown,
            kwargs={"timeout_millis": ENDS_WITHIN * 1000},
            name="otlp ends",
            daemon=True,
        )
        ending.start()
        ending.join(ENDS_WITHIN)


def _without_values(record: logging.LogRecord) -> bool:
    """Hide values in a log record: the SDK quotes a header that it cannot read, which may be a
    token."""
    if isinstance(record.args, tuple):
        record.args = ("***",) * len(record.args)
    return True
