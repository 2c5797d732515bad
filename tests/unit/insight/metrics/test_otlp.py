"""Metrics are sent by OTLP if the standard variables say so, and no run waits for that."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from headgate.insight.metrics import collector as collectors
from headgate.insight.metrics.collector import Collector
from headgate.insight.metrics.otlp import OtlpExport, is_asked, why_not
from headgate.insight.metrics.parts.contract import WatchedPipeline
from headgate.insight.metrics.pipeline import PipelineReading
from headgate.insight.metrics.samples import Histograms
from headgate.insight.metrics.serving import collected
from tests.support.waiting import wait_until
from tests.unit.insight.ledger.conftest import Lake, fill

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
pytest.importorskip("opentelemetry.exporter.otlp.proto.http")


class Receiver(HTTPServer):
    """Decodes what it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Receive)
        self.received: list[Any] = []
        threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True).start()

    def points(self, metric: str) -> list[Any]:
        """The newest points of a metric."""
        found = [
            (each, each.WhichOneof("data"))
            for request in self.received[-1:]
            for resource in request.resource_metrics
            for scope in resource.scope_metrics
            for each in scope.metrics
            if each.name == metric
        ]
        return [point for each, kind in found for point in getattr(each, kind).data_points]


class _Receive(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
            ExportMetricsServiceRequest,
        )

        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            import gzip

            body = gzip.decompress(body)
        self.server.received.append(ExportMetricsServiceRequest.FromString(body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    server = Receiver()
    monkeypatch.setenv(ENDPOINT, f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "200")
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def collector(place: WatchedPipeline, lake: Lake) -> Collector:
    fill(lake)
    histograms = Histograms()
    reading = PipelineReading(place.declared, place.layout, histograms)
    return Collector(histograms, lambda: (reading,))


@pytest.mark.parametrize(
    ("environment", "asked"),
    [
        ({}, False),
        ({ENDPOINT: "http://a:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://a:4318/v1/metrics"}, True),
        ({ENDPOINT: " "}, False),
        ({ENDPOINT: "http://a:4318", "OTEL_METRICS_EXPORTER": "none"}, False),
        ({ENDPOINT: "http://a:4318", "OTEL_METRICS_EXPORTER": "console, otlp"}, True),
        ({ENDPOINT: "http://a:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_METRICS_EXPORTER": "otlp"}, False),
    ],
)
def test_the_standard_variables_decide(environment: dict[str, str], asked: bool) -> None:
    assert is_asked(environment) == asked
    assert why_not(environment) is None


def test_a_missing_extra_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.insight.metrics.otlp.find_spec", lambda _: None)
    assert "headgate[otel]" in str(why_not({ENDPOINT: "http://a:4318"}))
    assert why_not({}) is None


@pytest.mark.slow
def test_the_same_metrics_are_sent(collector: Collector, receiver: Receiver) -> None:
    said = list[str]()
    with collected(collector, None, said.append):
        wait_until(lambda: receiver.points("headgate_read_records_total"), "nothing is sent", 20)
        collector.histograms.observe("batch_duration_seconds", 0.7, "tiny", "bronze")
        wait_until(lambda: receiver.points("headgate_batch_duration_seconds"), "no histogram", 20)
    (read,) = receiver.points("headgate_read_records_total")
    assert (read.as_double, labels(read)) == (7.0, {"pipeline": "tiny", "source": "events"})
    (duration,) = receiver.points("headgate_batch_duration_seconds")
    assert (duration.count, duration.sum) == (1, 0.7)
    assert duration.explicit_bounds[0] == 0.01
    assert len(receiver.points("headgate_records_total")) == 5
    assert said == []


def labels(point: Any) -> dict[str, str]:
    return {each.key: each.value.string_value for each in point.attributes}


@pytest.mark.slow
def test_without_the_variables_nothing_is_sent(
    collector: Collector, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ENDPOINT)
    monkeypatch.setattr(collectors, "EVERY", 0.05)
    with collected(collector, None, lambda _: None):
        wait_until(lambda: collector.samples, "nothing is read", 20)
        time.sleep(0.5)
    assert receiver.received == []


@pytest.mark.slow
@pytest.mark.parametrize("how", ["refuses", "never answers"])
def test_a_dead_endpoint_delays_neither_reading_nor_end(
    collector: Collector, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as dead:
        dead.bind(("127.0.0.1", 0))
        if how == "never answers":
            dead.listen()
        monkeypatch.setenv(ENDPOINT, f"http://127.0.0.1:{dead.getsockname()[1]}")
        monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "50")
        monkeypatch.setattr(collectors, "EVERY", 0.02)
        refreshed = list[float]()
        refresh = collector.refresh

        def timed() -> None:
            refresh()
            refreshed.append(time.monotonic())

        monkeypatch.setattr(collector, "refresh", timed)
        with collected(collector, None, lambda _: None):
            wait_until(lambda: len(refreshed) > 30, "reading is delayed", 20)
            ended = time.monotonic()
        assert time.monotonic() - ended < 5


@pytest.mark.slow
def test_an_sdk_that_hangs_at_its_end_is_left_behind(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    released = threading.Event()
    export = OtlpExport(collector, InMemoryMetricReader())
    monkeypatch.setattr(MeterProvider, "shutdown", lambda *_, **__: released.wait(30))
    began = time.monotonic()
    export.close()
    released.set()
    assert time.monotonic() - began < 5


def test_a_wrong_variable_is_told_and_ends_nothing(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:4318")
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "-5")
    said = list[str]()
    with collected(collector, None, said.append):
        pass
    assert len(said) == 1
    assert "not sent by OTLP" in said[0]


def test_a_wrong_header_is_told_without_its_value(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "Authorization: Bearer not-for-logs")
    OtlpExport(collector).close()
    assert "Header format invalid" in caplog.text
    assert "not-for-logs" not in caplog.text


def test_observations_are_forgotten_after_the_end(collector: Collector) -> None:
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    export = OtlpExport(collector, InMemoryMetricReader())
    assert len(collector.histograms.listeners) == 1
    export.close()
    assert collector.histograms.listeners == []
