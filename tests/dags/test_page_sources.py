"""The card of a stream with two sources in a browser: each source is named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from headgate.insight.status.freshness import Freshness, SourceFreshness
from headgate.insight.status.report import Account, TablesReport
from headgate.lake.control.driver_reports import (
    Backlog,
    Outage,
    PartitionBacklog,
    SourceFailure,
    SourceProgress,
)
from tests.dags.test_page_cards import GOLD, JOB, LEDGER, NOW, RUNNING, SOURCE, history
from tests.support import browser
from tests.support.cards import Cards, shown_cards, stream

pytestmark = pytest.mark.skipif(not browser.is_there, reason="needs the package chromium")

BEHIND = Backlog("records", 120, partitions={"clicks/0": PartitionBacklog(120, 61.0)})
SOURCES = {
    "orders": SourceProgress(60, NOW - timedelta(seconds=20), backlog=Backlog("files")),
    "clicks": SourceProgress(7, NOW - timedelta(minutes=9), backlog=BEHIND),
}
BOTH = replace(RUNNING, sources=SOURCES, jobs=(replace(JOB, sources=SOURCES),))
_clicks = replace(GOLD, table="clicks_per_minute", source="clicks")
ACCOUNT = Account(
    replace(LEDGER, sources=(SOURCE, replace(SOURCE, source="clicks", n=7)), gold=(GOLD, _clicks)),
    final={"per_minute": NOW, "clicks_per_minute": None},
)
_fresh = Freshness(
    {"per_minute": NOW, "clicks_per_minute": None},
    {
        "orders": SourceFreshness(NOW - timedelta(minutes=1), NOW - timedelta(minutes=2)),
        "clicks": SourceFreshness(NOW - timedelta(hours=3), NOW - timedelta(minutes=30)),
    },
)
_batches = next(iter((history([5, 6, 7]).history or {}).values()))
TABLES = TablesReport(ACCOUNT, history={"orders": _batches, "clicks": _batches}, freshness=_fresh)


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cards]:
    with shown_cards(tmp_path_factory.mktemp("cards") / "profile") as shown:
        yield shown


def rows(cards: Cards) -> list[list[str]]:
    """The rows of the table of sources."""
    return [row.split("\t") for row in cards.text(".card > div > .scroll tbody tr")]


def test_each_source_has_a_row(cards: Cards) -> None:
    cards.show(NOW, stream("shop", BOTH, TABLES))
    assert rows(cards) == [
        ["orders", "reads", "60", "none", "11:59:00Z", "2 min ago"],
        ["clicks", "reads", "7", "120 records 61 s", "09:00:00Z", "30 min ago"],
    ]
    labels = cards.text(".figures:first-child dt")
    assert labels == ["Rows/s", "Gold changed"], "what belongs to a source is in the table"
    assert cards.text(".figcaption, figcaption span:first-child") == [
        "orders: rows per batch",
        "orders: time to gold",
        "clicks: rows per batch",
        "clicks: time to gold",
    ]
    assert "✓ balances\nof all sources" in "".join(cards.text(".figure dd"))
    assert "batch" not in cards.text(".meta")[0]


def test_a_source_that_fails_or_is_away_is_named_and_the_stream_runs(cards: Cards) -> None:
    skip = "headgate files skip shop 7"
    failed = SourceFailure("file 7 was rewritten", f"leave it out: {skip}", NOW, (skip,))
    away = Outage("no answer", NOW - timedelta(minutes=5), NOW)
    found = {
        "orders": replace(SOURCES["orders"], failure=failed),
        "clicks": replace(SOURCES["clicks"], outage=away),
    }
    trouble = "source orders: file 7 was rewritten; source clicks: no answer, for 5 min"
    cards.show(NOW, stream("shop", replace(BOTH, sources=found, trouble=trouble), TABLES))
    assert [row[:2] for row in rows(cards)] == [
        ["orders", "failed"],
        ["clicks", "waiting for 5 min"],
    ]
    said, remedy = cards.text(".notes .note.bad")
    assert said == trouble
    assert remedy.startswith("The source orders waits for a person.")
    assert cards.text(".notes code") == [skip]
    assert cards.text(".card[data-tone=bad] .state") == ["running"]


def test_one_source_has_no_table(cards: Cards) -> None:
    cards.show(NOW, stream("shop", RUNNING, replace(TABLES, freshness=None)))
    assert rows(cards) == []
    assert cards.text(".figures:first-child dt")[1] == "Backlog"
