"""The samples of the drivers of a pipeline: whether they run, their backlog, their limits."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from headgate.declaration.load import load
from headgate.insight.metrics.parts.contract import WatchedPipeline
from headgate.insight.metrics.parts.stream import capped
from headgate.insight.metrics.samples import Histograms
from headgate.lake.control.driver_reports import Backlog, Outage, PartitionBacklog
from headgate.lake.control.ownership import Owner
from tests.unit.insight.ledger.conftest import Lake, fill
from tests.unit.insight.metrics.conftest import NOW, Clock, Reading, unreadable, value, values
from tests.unit.supervision.conftest import lease
from tests.unit.supervision.conftest import report as report_job

report = partial(report_job, source="events")


def test_a_damaged_document_hides_the_stream_alone(
    lake: Lake, read: Reading, place: WatchedPipeline
) -> None:
    fill(lake)
    lease(place.layout, Owner.here())
    place.layout.storage.write("_headgate/status-fused.json", b"{")
    found = read()
    assert unreadable(found) == {"stream"}
    assert value(found, "read_records_total", "events") == 7


def test_a_driver_that_is_killed_is_down_and_meant_to_run(
    read: Reading, place: WatchedPipeline
) -> None:
    lease(place.layout, replace(Owner.here(), started=1.0), renewed=NOW)
    report(place.layout, "fused", epoch=1, n=3, samples=[])
    found = read()
    assert value(found, "condition", "dead") == 1
    assert (value(found, "meant_to_run"), value(found, "running")) == (1, 0)


def test_a_driver_that_runs_reports_its_backlog(read: Reading, place: WatchedPipeline) -> None:
    lease(place.layout, Owner.here(), renewed=NOW)
    parts = {"bids/0": PartitionBacklog(5, 2.5), "bids/1": PartitionBacklog(0, 0.0)}
    backlog = Backlog("records", 5, partitions=parts)
    more: dict[str, Any] = {
        "trouble": "why",
        "stuck": {"out": {"since": NOW.isoformat(), "why": "no"}},
    }
    report(place.layout, "fused", epoch=1, n=3, backlog=backlog, samples=[], **more)
    found = read()
    assert value(found, "running") == 1
    assert value(found, "trouble", "fused") == 1
    assert value(found, "publication_stuck_timestamp_seconds", "out") == NOW.timestamp()
    assert values(found, "backlog_records") == {("events", "bids/0"): 5, ("events", "bids/1"): 0}
    assert value(found, "backlog_age_seconds", "events", "bids/0") == 2.5


def test_an_outage_is_seen_only_while_the_driver_waits(
    read: Reading, place: WatchedPipeline
) -> None:
    lease(place.layout, Owner.here(), renewed=NOW)
    since = NOW - timedelta(minutes=2)
    outage = Outage("no answer", since, NOW)
    report(place.layout, "fused", epoch=1, n=3, samples=[], outage=outage, trouble="no answer")
    found = read()
    assert value(found, "condition", "waiting") == 1
    assert value(found, "running") == 0
    assert value(found, "meant_to_run") == 1
    assert value(found, "outage_timestamp_seconds", "events") == since.timestamp()
    report(place.layout, "fused", epoch=1, n=3, samples=[])
    assert values(read(NOW, after=5.0), "outage_timestamp_seconds") == {}


@pytest.mark.parametrize("trouble", [None, "publish out: it is down"])
def test_a_backlog_that_grows_is_backpressure(
    read: Reading, place: WatchedPipeline, trouble: str | None
) -> None:
    lease(place.layout, Owner.here(), renewed=NOW)
    pressed = []
    for step in range(6):
        backlog = Backlog("files", 100 + 40 * step, 1000)
        report(place.layout, "fused", epoch=1, n=3, backlog=backlog, samples=[], trouble=trouble)
        found = read(NOW + timedelta(seconds=5 * step), after=5.0)
        pressed.append(value(found, "backpressure", "events"))
    assert pressed[0] == 0
    assert pressed[-1] == 1
    for step in range(6, 16):
        backlog = Backlog("files", 10, 1000) if step == 6 else Backlog("files", 0, 0)
        report(place.layout, "fused", epoch=1, n=3, backlog=backlog, samples=[])
        found = read(NOW + timedelta(seconds=5 * step), after=5.0)
    assert value(found, "backpressure", "events") == 0


def test_a_pause_is_no_backpressure_and_what_was_before_does_not_count(
    read: Reading, place: WatchedPipeline
) -> None:
    lease(place.layout, Owner.here(), renewed=NOW)
    for step in range(12):
        paused: dict[str, Any] = {"paused": NOW} if step == 5 else {}
        backlog = Backlog("files", 100 + 40 * step, 1000)
        report(place.layout, "fused", epoch=1, n=3, backlog=backlog, samples=[], **paused)
        found = read(NOW + timedelta(seconds=5 * step), after=5.0)
        is_known = step in (3, 4) or step >= 9
        assert value(found, "backpressure", "events") == is_known, step


def test_partitions_are_capped_and_nothing_is_lost() -> None:
    parts = {f"bids/{n}": PartitionBacklog(n, float(n)) for n in range(250)}
    kept = capped(parts)
    assert len(kept) == 100
    assert list(kept)[:3] == ["bids/0", "bids/1", "bids/2"]
    assert sum(part.records for part in kept.values()) == sum(range(250))
    assert kept["others"].seconds == 249.0
    few = {name: parts[name] for name in list(parts)[:100]}
    assert capped(few) == few


def test_limits_are_the_declarations_own(
    tmp_path: Path, place: WatchedPipeline, clock: Clock
) -> None:
    text = place.declared.file.read_text()
    text = text.replace("files: {path", "expect_input_every: 5 minutes\n    files: {path")
    file = tmp_path / "other.yml"
    file.write_text(
        f"{text}savepoints: {{every: 1 hour}}\nmetrics: {{latency_within: 3 seconds}}\n"
    )
    found = Reading(replace(place, declared=load(file)), Histograms(), clock)()
    assert values(found, "limit_seconds") == {
        ("freshness",): 600,
        ("outage",): 60,
        ("backlog",): 900,
        ("publication",): 900,
        ("latency",): 3,
        ("savepoint",): 7260,
    }
    assert value(found, "expected_input_seconds", "events") == 300
    assert values(found, "expected_event_time_lag_seconds") == {}
