"""The pages of the dashboard when an answer fails, comes late, or does not come, in a browser."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest

from headgate.dashboard.errors import DashboardError, NotFoundError, TooMuchError
from headgate.dashboard.questions.rows import RowsQuestion, rows
from headgate.dashboard.reading.shown import Shown
from headgate.dashboard.server import tables
from headgate.dashboard.server.commits import Commits
from headgate.dashboard.server.context import Context
from tests.support import browser
from tests.support.browser import NavigatedError
from tests.support.charted import Charted, sale
from tests.support.dashboard_page import DashboardPage, logged_in
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not browser.is_there, reason="needs the package chromium"),
]
LIVE = "document.getElementById('live').textContent === 'live'"
BAD = "document.querySelector('.note.bad')"
FAILS = """(() => {
  const real = window.fetch;
  window.fetch = (address, ...rest) =>
    window.isAway && String(address).includes('/api/overview')
      ? Promise.reject(new TypeError('no network'))
      : real(address, ...rest);
  window.isAway = true;
})()"""
SORT = "[...document.querySelectorAll('thead button')].find((b) => b.innerText.includes('orders'))"
NEWER, OLDER = (f"document.querySelectorAll('.pages button')[{each}]" for each in range(2))
BE_SEEN = """(is) => {
  Object.defineProperty(document, 'hidden', {value: !is, configurable: true});
  document.dispatchEvent(new Event('visibilitychange'));
}"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Charted:
    made = Charted(tmp_path_factory.mktemp("shop"))
    made.sell(final=[sale(n, c, n + 3, "40.00") for n in range(45) for c in ("app", "web")])
    return made


@pytest.fixture(scope="module")
def opened(shop: Charted, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DashboardPage]:
    with logged_in(shop, tmp_path_factory.mktemp("browser")) as shown:
        yield shown


@pytest.fixture
def page(opened: DashboardPage) -> Iterator[DashboardPage]:
    yield opened
    assert opened.page.faults == [], "an error that nobody has caught"


@pytest.fixture
def short_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """The events of a page end after half a second, and the browser connects again."""
    monkeypatch.setattr(Commits.events, "__defaults__", (0.5,))


def test_the_overview_goes_on_after_a_failed_refresh(page: DashboardPage, shop: Charted) -> None:
    page.open("/")
    page.wait(LIVE)
    page.run(FAILS)
    shop.sell(open_=[sale(50, "app", 1, "5.00")])
    page.wait(f"{BAD}?.innerText.includes('the dashboard does not answer')")
    assert page.text("h2") == ["shop"], "what was shown stays"
    page.run("window.isAway = false")
    page.wait(f"!{BAD}")


def test_a_page_that_is_not_seen_has_no_connection(
    page: DashboardPage, shop: Charted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser has only six connections to a server."""
    listeners = set[object]()
    listen, leave = Commits._listen, Commits._leave

    def listens(commits: Commits, shown: Shown, changed: asyncio.Event) -> None:
        listeners.add(changed)
        listen(commits, shown, changed)

    def leaves(commits: Commits, shown: Shown, changed: asyncio.Event) -> None:
        listeners.discard(changed)
        leave(commits, shown, changed)

    monkeypatch.setattr(Commits, "_listen", listens)
    monkeypatch.setattr(Commits, "_leave", leaves)
    page.open("/gold/shop/sales")
    page.wait(LIVE)
    page.run(f"({BE_SEEN})(false)")
    wait_until(lambda: not listeners, "the page stays connected", 20.0)
    assert page.text("#live") == ["connecting …"]
    shop.sell(open_=[sale(50, "app", 78, "5.00")])
    page.run(f"({BE_SEEN})(true)")
    page.wait(f"{LIVE} && document.querySelector('tbody tr').innerText.includes('78')")
    assert len(listeners) == 1


def test_a_table_without_a_batch_is_shown_with_its_first(
    page: DashboardPage, shop: Charted, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: object) -> None:
        raise NotFoundError("there is no table yet", "it appears with the first batch")

    with monkeypatch.context() as patch:
        patch.setattr(Shown, "gold", missing)
        page.open("/gold/shop/sales")
        page.wait(f"{LIVE} && {BAD}?.innerText.includes('with the first batch')")
    shop.sell(open_=[sale(50, "app", 3, "5.00")])
    page.wait(f"!{BAD} && document.querySelector('.uplot canvas')")


@pytest.mark.usefixtures("short_streams")
def test_a_refused_page_connects_again(
    page: DashboardPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = set[str]()

    def refuses(*_: object) -> None:
        refused.update(frame.name for frame in traceback.extract_stack())
        raise NotFoundError("it is away", "wait")

    page.open("/gold/shop/sales")
    page.wait(LIVE)
    with monkeypatch.context() as patch:
        patch.setattr(Context, "pipeline", refuses)
        # Not only a question that the page asked when it was opened.
        wait_until(lambda: "events" in refused, "the page does not connect again", 20.0)
        page.wait(f"{BAD}?.innerText.includes('it is away')")
    page.wait(f"{LIVE} && !{BAD}")


@pytest.mark.usefixtures("short_streams")
def test_a_page_whose_session_has_ended_leads_to_the_login(page: DashboardPage) -> None:
    page.open("/gold/shop/sales")
    page.wait(LIVE)
    page.run("fetch('/logout', {method: 'POST'})")
    page.wait("document.getElementById('password')")
    page.log_in()


def test_rows_that_cannot_be_sorted_are_told_and_those_before_stay(
    page: DashboardPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*arguments: Any) -> Mapping[str, Any]:
        if arguments[3].sort:
            raise DashboardError("no order today", "come again")
        return rows(*arguments)

    page.open("/gold/shop/sales")
    before = page.column("orders")
    with monkeypatch.context() as patch:
        patch.setattr(tables, "rows", fails)
        page.run(f"{SORT}.click()")
        page.wait(f"{BAD}?.innerText.includes('no order today')")
        assert page.column("orders") == before
        assert page.text("th[aria-sort=descending]") == []
        page.run(f"{OLDER}.click()")
        page.wait(f"!{BAD} && document.querySelector('.pages').innerText.includes('26 –')")
    page.run(f"{SORT}.click()")
    page.wait("document.querySelector('th[aria-sort=descending]')")
    assert page.column("orders")[0] == "47"


def test_a_refused_download_says_why(page: DashboardPage, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise TooMuchError("too many rows", "choose a shorter time")

    monkeypatch.setattr(tables, "write_file", fails)
    page.open("/gold/shop/sales")
    with suppress(NavigatedError):
        page.run("document.querySelector('a[href*=csv]').click()")
    page.wait("document.body?.innerText.includes('choose a shorter time')")


def test_no_click_leads_past_the_first_and_the_last_page(page: DashboardPage) -> None:
    page.open("/gold/shop/sales?last=864000")
    page.run(f"{OLDER}.click(), {OLDER}.click(), {OLDER}.click(), {OLDER}.click(), {OLDER}.click()")
    page.wait("document.querySelector('.pages').innerText.includes('76 –')")
    page.run(f"{NEWER}.click()")
    page.wait("document.querySelector('.pages').innerText.includes('51 –')")
    page.run(f"{NEWER}.click(), {NEWER}.click(), {NEWER}.click()")
    page.wait(f"!{BAD} && {NEWER}.disabled")


def test_a_late_answer_does_not_replace_a_newer_one(
    page: DashboardPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*arguments: Any) -> Mapping[str, Any]:
        question = arguments[3]
        assert isinstance(question, RowsQuestion)
        time.sleep(1.0 if question.page == 1 else 0.0)
        return rows(*arguments)

    monkeypatch.setattr(tables, "rows", slow)
    page.open("/gold/shop/sales?last=864000")
    page.run(f"{OLDER}.click(), {OLDER}.click()")
    page.wait("document.querySelector('.pages').innerText.includes('51 –')")
    time.sleep(1.5)
    assert "51 –" in page.text(".pages")[0]


def test_going_back_shows_no_filter_that_is_none(page: DashboardPage) -> None:
    page.open("/gold/shop/sales?x=1")
    page.run(
        """(() => {
          const input = document.querySelector('input[data-key=channel]');
          input.value = 'web';
          input.dispatchEvent(new Event('change'));
        })()"""
    )
    page.wait("document.querySelectorAll('.chip').length === 1")
    page.run("history.back()")
    page.wait("location.search === '?x=1'")
    page.wait("document.querySelectorAll('.chip').length === 0")
