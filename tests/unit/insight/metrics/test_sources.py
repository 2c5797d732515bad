"""The samples of a pipeline with two sources: each has its own series."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from headgate.insight.metrics.parts.contract import WatchedPipeline
from headgate.insight.metrics.parts.stream import StreamPart
from headgate.insight.metrics.parts.tables import TablesPart
from headgate.insight.metrics.samples import Histograms, Samples
from headgate.lake.control.driver_reports import Backlog
from tests.support.lake import Lake
from tests.support.several_sources import two_sources as _two_sources
from tests.support.two_reported import AWAY, CLICKS, FAILED, SINCE, report_two
from tests.unit.insight.metrics.conftest import values
from tests.unit.supervision.conftest import NOW

two_sources = _two_sources


@pytest.fixture
def stream(two_sources: Lake) -> StreamPart:
    place = WatchedPipeline(two_sources.pipeline, two_sources.layout)
    return StreamPart(place, {"orders": 3, "clicks": 1}.__getitem__)


def read(part: StreamPart | TablesPart, after: float = 0.0) -> Samples:
    samples = Samples("shop")
    part.read(samples, NOW + timedelta(seconds=after))
    return samples


def test_an_outage_and_a_failure_are_of_a_source(stream: StreamPart, two_sources: Lake) -> None:
    report_two(two_sources.layout, replace(CLICKS, outage=AWAY), load_outage=None)
    found = read(stream)
    assert values(found, "outage_timestamp_seconds") == {("clicks",): SINCE.timestamp()}
    assert values(found, "source_failed_timestamp_seconds") == {}
    assert values(found, "running") == {(): 1}, "the other source is read"
    report_two(two_sources.layout, replace(CLICKS, failure=FAILED))
    found = read(stream)
    assert values(found, "outage_timestamp_seconds") == {}
    assert values(found, "source_failed_timestamp_seconds") == {("clicks",): SINCE.timestamp()}
    assert values(found, "load_outage_timestamp_seconds") == {}


def test_a_backlog_is_of_a_source(stream: StreamPart, two_sources: Lake) -> None:
    report_two(two_sources.layout)
    assert values(read(stream), "backlog_files") == {("orders",): 0, ("clicks",): 2}
    batches = replace(CLICKS, backlog=Backlog("batches", 4))
    report_two(two_sources.layout, batches)
    assert values(read(stream), "backlog_batches") == {("clicks", "fused"): 4}


def test_only_the_source_whose_backlog_grows_is_under_pressure(
    stream: StreamPart, two_sources: Lake
) -> None:
    for step in range(6):
        behind = Backlog("files", 100 + 40 * step, 1000)
        report_two(two_sources.layout, replace(CLICKS, backlog=behind))
        found = read(stream, after=5.0 * step)
    assert values(found, "backpressure") == {("orders",): 0, ("clicks",): 1}


def test_positions_and_freshness_are_of_a_source(two_sources: Lake) -> None:
    place = WatchedPipeline(two_sources.pipeline, two_sources.layout)
    part = TablesPart(place, Histograms())
    found = read(part)
    assert values(found, "batch_number") == {
        ("bronze/orders",): 3,
        ("silver/paid",): 2,
        ("gold/orders_per_minute",): 2,
        ("bronze/clicks",): 1,
        ("silver/seen",): 1,
        ("gold/clicks_per_minute",): 1,
    }
    assert values(found, "lag_batches")["gold/clicks_per_minute",] == 0, "orders does not count"
    assert values(found, "read_records_total") == {("orders",): 6, ("clicks",): 2}
    assert values(found, "last_record_timestamp_seconds").keys() == {("orders",), ("clicks",)}
    assert [part.files_read(name) for name in ("orders", "clicks")] == [3, 1]
