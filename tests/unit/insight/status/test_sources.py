"""The health and the reports of a pipeline with two sources: each is judged alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from headgate.insight.status.batch_times import batch_times
from headgate.insight.status.freshness import freshness
from headgate.insight.status.health import HealthContext, results
from headgate.insight.status.limits import CHECKS, Check, Limits
from headgate.insight.status.report import (
    status_document,
    stream_status,
    tables_document,
    tables_of_stream,
)
from headgate.lake.control.driver_reports import Backlog, SourceProgress
from headgate.lake.tables.state import time_of
from headgate.supervision.job_state import probe
from tests.support.lake import Lake
from tests.support.several_sources import two_sources as _two_sources
from tests.support.two_reported import AWAY, CLICKS, FAILED, ORDERS, SINCE, SKIP, report_two
from tests.unit.supervision.conftest import NOW

two_sources = _two_sources

ASKED: tuple[Check, ...] = ("freshness", "outage", "source", "backlog", "input", "event_time")


def found(lake: Lake, clicks: SourceProgress) -> dict[Check, tuple[str, ...]]:
    """What the checks that are about sources find, without those that find nothing."""
    report_two(lake.layout, clicks)
    context = HealthContext(lake.pipeline, lake.layout, probe(lake.layout, NOW), NOW)
    said = results(ASKED, context, Limits())
    return {check: each for check, each in said.items() if each}


def test_a_failed_source_is_a_failed_check(two_sources: Lake) -> None:
    assert "source" in CHECKS
    assert found(two_sources, CLICKS) == {}
    (said,) = found(two_sources, replace(CLICKS, failure=FAILED))["source"]
    assert said.startswith("fused: source clicks: file 7 was rewritten, for 5 min\nleave it out: ")


def test_an_outage_of_one_source_is_its_own(two_sources: Lake) -> None:
    said = found(two_sources, replace(CLICKS, outage=AWAY))
    away = "the folder is gone, for 5 min (7 attempts); the driver keeps trying"
    assert said == {"outage": (f"fused: source clicks: {away}",)}


def test_a_backlog_is_that_of_a_source(two_sources: Lake) -> None:
    said = found(two_sources, replace(CLICKS, backlog=Backlog("files", 1_001)))
    assert said == {"backlog": ("fused: source clicks: 1,001 files wait, limit 1,000",)}


@pytest.mark.parametrize(
    ("clicks", "silent"),
    [
        (replace(CLICKS, backlog=Backlog("files", 0)), ["orders", "clicks"]),
        (CLICKS, ["orders"]),  # it has unread input
        (replace(CLICKS, backlog=Backlog("files", 0), outage=AWAY), ["orders"]),
        (replace(CLICKS, backlog=Backlog("files", 0), failure=FAILED), ["orders"]),
    ],
)
def test_only_a_source_that_is_read_and_has_no_input_is_silent(
    two_sources: Lake, clicks: SourceProgress, silent: list[str]
) -> None:
    declared = two_sources.pipeline
    arrived = freshness(two_sources.layout, declared).sources["orders"].arrived
    assert arrived is not None
    later = arrived + timedelta(hours=1)
    every = timedelta(seconds=1)
    expecting = {
        name: replace(source, expect_input_every=every) for name, source in declared.sources.items()
    }
    report_two(two_sources.layout, clicks)
    (job,) = probe(two_sources.layout, NOW)
    running = (replace(job, state="running", renewed=later),)
    expected = replace(declared, sources=expecting)
    context = HealthContext(expected, two_sources.layout, running, later)
    said = results(("input",), context, Limits())["input"]
    assert [each.partition(": no record for ")[0] for each in said] == [
        f"source {name}" for name in sorted(silent)
    ]


def test_a_stream_reports_its_sources(two_sources: Lake) -> None:
    report_two(two_sources.layout, replace(CLICKS, failure=FAILED))
    status = stream_status(two_sources.layout, probe(two_sources.layout, NOW), NOW)
    assert status.condition == "running", "it reads the other source"
    assert status.sources == {"orders": ORDERS, "clicks": replace(CLICKS, failure=FAILED)}
    document = status_document(status)["sources"]
    assert document["orders"] == {
        "n": 3,
        "watermark": (NOW - timedelta(seconds=20)).isoformat(),
        "set_aside": 0,
        "backlog": {
            "unit": "files",
            "count": 0,
            "size": 0,
            "partitions": {},
            "seconds": 0.0,
            "holding": None,
            "says": "none",
        },
        "outage": None,
        "failure": None,
    }
    failure = document["clicks"]["failure"]
    assert (failure["reason"], failure["since"]) == (FAILED.reason, SINCE.isoformat())
    assert (failure["remedy"], failure["commands"]) == (FAILED.remedy, [SKIP])


def test_a_stream_waits_if_it_can_read_no_source(two_sources: Lake) -> None:
    report_two(two_sources.layout, replace(CLICKS, failure=FAILED))
    (job,) = probe(two_sources.layout, NOW)
    away = replace(ORDERS, outage=replace(AWAY, since=SINCE + timedelta(minutes=1)))
    waits = replace(job, sources={"orders": away, "clicks": job.sources["clicks"]})
    status = stream_status(two_sources.layout, [waits], NOW)
    assert (status.condition, status.since) == ("waiting", SINCE + timedelta(minutes=1))


def test_tables_report_the_batches_and_the_freshness_of_each_source(two_sources: Lake) -> None:
    times = batch_times(two_sources.layout, two_sources.pipeline, 60)
    assert [batch.n for batch in times["orders"]] == [1, 2, 3]
    assert [batch.done is None for batch in times["orders"]] == [False, False, True]
    (clicks,) = times["clicks"]
    assert (clicks.n, clicks.rows) == (1, 2)
    assert clicks.done is not None
    last = batch_times(two_sources.layout, two_sources.pipeline, 2)
    assert [batch.n for batch in last["orders"]] == [2, 3]
    fresh = freshness(two_sources.layout, two_sources.pipeline)
    bronze = two_sources.runtime.table("bronze/clicks").refresh()
    assert bronze.changed_at is not None
    assert fresh.sources["clicks"].arrived == time_of(bronze.changed_at)
    assert fresh.sources["orders"].arrived != fresh.sources["clicks"].arrived
    document = tables_document(tables_of_stream(two_sources.layout, two_sources.pipeline))
    assert document["account"]["n"] == {"orders": 3, "clicks": 1}
    assert [(g["table"], g["source"]) for g in document["account"]["gold"]] == [
        ("orders_per_minute", "orders"),
        ("clicks_per_minute", "clicks"),
    ]
    assert {name: len(each) for name, each in document["history"].items()} == {
        "orders": 3,
        "clicks": 1,
    }
