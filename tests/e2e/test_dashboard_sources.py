"""The dashboard of a pipeline with two sources, in a browser."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support import browser
from tests.support.dashboard_page import DashboardPage
from tests.support.lake import Lake
from tests.support.served import served
from tests.support.several_sources import two_sources as _two_sources
from tests.support.two_reported import CLICKS, FAILED, report_two

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not browser.is_there, reason="needs the package chromium"),
]

two_sources = _two_sources


@pytest.fixture
def page(two_sources: Lake, tmp_path: Path) -> Iterator[DashboardPage]:
    failed = replace(CLICKS, failure=FAILED)
    report_two(two_sources.layout, failed, renewed=datetime.now(UTC))
    file, root = two_sources.pipeline.file, str(two_sources.root)
    with (
        served(file, root) as site,
        browser.opened("about:blank", tmp_path / "profile") as opened,
    ):
        shown = DashboardPage(opened, site)
        shown.log_in()
        yield shown
        assert opened.faults == []


def test_each_source_is_named(page: DashboardPage) -> None:
    page.open("/")
    page.wait("document.querySelector('.sources li')")
    orders, clicks = page.text(".sources li")
    assert orders.split("\n")[0] == "orders"
    assert "Quarantine (1)" in orders
    assert "Quarantine (0)" in clicks
    (note,) = page.text(".card > .note")
    assert note.startswith("clicks: file 7 was rewritten")
    assert "leave it out: headgate files skip shop 7" in note
    page.open("/ledger/shop")
    page.wait("document.querySelectorAll('tbody').length === 3")
    assert [row.split("\t")[:3] for row in page.text("section:first-of-type tbody tr")] == [
        ["orders", "3", "6"],
        ["clicks", "1", "2"],
    ]
    page.open("/quarantine/shop/orders")
    page.wait("document.querySelector('.tile dd, .tiles dd')")
    assert page.text("h1") == ["Quarantine of orders"]
