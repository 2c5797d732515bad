"""The overview of the dashboard about a pipeline with two sources."""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import replace
from typing import Any

import httpx
import pytest

from headgate.insight.dashboard.questions.overview import overview
from headgate.insight.dashboard.reading.shown import Shown
from headgate.insight.dashboard.server.app import dashboard_app
from headgate.insight.dashboard.server.context import SCOPE, Context
from headgate.insight.dashboard.server.questions import Desk
from tests.support.lake import Lake
from tests.support.several_sources import two_sources as _two_sources
from tests.support.two_reported import AWAY, CLICKS, FAILED, report_end, report_two
from tests.unit.supervision.conftest import NOW

two_sources = _two_sources


def test_each_source_has_its_freshness_and_its_trouble(two_sources: Lake) -> None:
    report_two(two_sources.layout, replace(CLICKS, failure=FAILED))
    shown = Shown.of(two_sources.pipeline, str(two_sources.root))
    found = overview(shown, NOW)
    assert (found["problem"], found["condition"]) == (None, "running")
    orders, clicks = found["sources"]
    assert [orders["source"], clicks["source"]] == ["orders", "clicks"]
    assert (orders["trouble"], orders["remedy"], orders["quarantined"]) == (None, None, 1)
    assert (clicks["trouble"], clicks["quarantined"]) == (FAILED.reason, 0)
    assert clicks["remedy"] == FAILED.remedy
    assert orders["arrived"] != clicks["arrived"]
    report_two(two_sources.layout, replace(CLICKS, outage=AWAY))
    orders, clicks = overview(shown, NOW)["sources"]
    assert clicks["trouble"].startswith("the folder is gone, for 5 min")
    assert (orders["trouble"], clicks["remedy"]) == (None, None)


def test_a_run_that_has_failed_leaves_what_a_person_has_to_repair(two_sources: Lake) -> None:
    report_end(two_sources.layout)
    found = overview(Shown.of(two_sources.pipeline, str(two_sources.root)), NOW)
    assert found["condition"] == "failed"
    assert [each["trouble"] for each in found["sources"]] == [None, FAILED.reason]
    assert [each["remedy"] for each in found["sources"]] == [None, FAILED.remedy]


@pytest.mark.parametrize(
    ("path", "status", "rows"),
    [("orders", 200, 1), ("clicks", 200, 0), ("nowhere", 404, None)],
)
def test_quarantine_is_that_of_a_source(
    two_sources: Lake, path: str, status: int, rows: int | None
) -> None:
    shown = Shown.of(two_sources.pipeline, str(two_sources.root))
    context = Context({shown.name: shown}, (), "")
    desk = Desk()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await dashboard_app(desk)({**scope, SCOPE: context}, receive, send)

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return await client.get(f"/api/quarantine/shop/{path}")

    with closing(desk.charts):
        answer = asyncio.run(ask())
    assert answer.status_code == status, answer.text
    if rows is None:
        assert answer.json()["error"]["remedy"] == "there are: orders, clicks"
    else:
        assert sum(each["count"] for each in answer.json()["reasons"]) == rows
