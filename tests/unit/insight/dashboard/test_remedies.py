"""Commands in the errors of a dashboard with several pipelines: each is about its own pipeline."""

from __future__ import annotations

import asyncio
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import pytest

from headgate import commands
from headgate.commands import SEE_DAMAGE, Place, program
from headgate.declaration.load import load
from headgate.errors import HeadgateError
from headgate.insight.dashboard.questions import overview
from headgate.insight.dashboard.reading.shown import Declarations, Shown
from headgate.insight.dashboard.server.app import dashboard_app
from headgate.insight.dashboard.server.context import SCOPE, Context
from headgate.insight.dashboard.server.questions import Desk
from headgate.insight.dashboard.server.serving import DashboardSettings, _shown
from tests.support.charted import DECLARATION, Charted, sale


@pytest.fixture(autouse=True)
def _another_pipeline_was_named_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "_here", Place("headgate", "clicks", "elsewhere"))


@pytest.fixture
def clicks(tmp_path: Path) -> Shown:
    file = tmp_path / "pipelines/clicks.yml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(DECLARATION.replace("pipeline: shop", "pipeline: clicks"))
    return Shown.of(load(file), str(tmp_path / "lake"))


def said(path: str, *pipelines: Shown, project: Path) -> str:
    """The remedy of the error that an address answers."""
    context = Context({each.name: each for each in pipelines}, (project,), "")
    desk = Desk()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await dashboard_app(desk)({**scope, SCOPE: context}, receive, send)

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            return await client.get(path)

    with closing(desk.charts):
        answer = asyncio.run(ask())
    assert answer.status_code in (400, 503), answer.text
    found: str = answer.json()["error"]["remedy"]
    return found


def typed(verb: str, of: Shown | Charted, *more: str) -> str:
    file = of.pipeline.file
    return " ".join((program(anywhere=True), verb, str(file), "--root", of.root, *more))


def test_the_pipeline_of_a_table(shop: Charted, clicks: Shown) -> None:
    shop.file.write_text(shop.file.read_text().replace("largest: max", "greatest: max"))
    shop.pipeline = load(shop.file)
    path = "/api/gold/shop/sales/series?figure=greatest"
    remedy = said(path, shop.shown(), clicks, project=shop.folder)
    assert remedy == f"deploy the declaration: {typed('upgrade', shop)}"


@pytest.mark.parametrize("tables", ["gold.sales", "shop.gold.sales, clicks.gold.sales"])
def test_the_pipeline_of_a_chart(
    tmp_path: Path, clicks: Shown, monkeypatch: pytest.MonkeyPatch, tables: str
) -> None:
    shop = Charted(tmp_path)
    shop.sell(final=[sale(0, "app", 4, "40.00")])
    shop.board(f"dashboard: one\ncharts:\n  a: {{kind: table, sql: 'SELECT 1 FROM {tables}'}}\n")
    damaged = shop.shown() if tables == "gold.sales" else clicks

    def version(self: Shown, _: str) -> None:
        if self.name == damaged.name:
            raise HeadgateError("it is damaged", SEE_DAMAGE)

    monkeypatch.setattr(Shown, "version", version)
    pipelines = [shop.shown(), clicks] if damaged is clicks else [shop.shown()]
    remedy = said("/api/board/one/a", *pipelines, project=tmp_path)
    assert remedy == typed("repair", damaged, "--dry-run")


def test_the_pipeline_of_a_card(shop: Charted, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise HeadgateError("it is damaged", SEE_DAMAGE)

    monkeypatch.setattr(overview, "freshness", fails)
    found = overview.overview(shop.shown(), datetime.now(UTC))
    assert found["problem"] == f"it is damaged\n{typed('repair', shop, '--dry-run')}"


def test_the_file_of_a_wrong_declaration(shop: Charted) -> None:
    wrong = shop.file.with_name("wrong.yml")
    wrong.write_text("pipeline: wrong\n")
    settings = DashboardSettings([shop.file, wrong], shop.root, "::1", 8090)
    shown, (problem,) = _shown(settings, Declarations())
    assert list(shown) == ["shop"]
    assert problem.splitlines()[-1] == f"{program(anywhere=True)} plan {wrong} --root {shop.root}"
