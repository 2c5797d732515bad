"""The pages of the dashboard when an answer fails, comes late, or does not come, in a browser."""

from __future__ import annotations

import asyncio
import json
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import pytest

from headgate.insight.dashboard.errors import DashboardError, NotFoundError, TooMuchError
from headgate.insight.dashboard.questions.rows import RowsQuestion, rows
from headgate.insight.dashboard.reading.shown import Shown
from headgate.insight.dashboard.server import tables
from headgate.insight.dashboard.server.commits import Commits
from headgate.insight.dashboard.server.context import Context
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
  const broken = () => new ReadableStream({ start: (body) => body.error(new TypeError('lost')) });
  window.fetch = (address, ...rest) => {
    if (!window.isAway || !/overview|rows/.test(address)) return real(address, ...rest);
    if (address.includes('rows')) return Promise.resolve(new Response(broken()));
    return Promise.reject(new TypeError('no network'));
  };
  window.isAway = true;
})()"""
# A pause counts when it ends: a commit may begin a try before that, and the pause begins again.
NO_PAUSE = """window.pauses = [];
window.setTimeout = ((real) => (then, after) =>
  real(() => (after >= 3000 && pauses.push(after), then()), 1))(window.setTimeout)"""
ASKED = "performance.getEntriesByType('resource').map((each) => each.name)"
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


def test_an_answer_that_breaks_off_is_asked_for_again(page: DashboardPage) -> None:
    page.open("/gold/shop/sales")
    page.run(f"{FAILS}, {OLDER}.click()")
    page.wait(f"{BAD}?.innerText.includes('the dashboard does not answer')")
    page.run("window.isAway = false")
    page.wait(f"!{BAD} && document.querySelector('.pages').innerText.includes('26 –')")


def test_pauses_between_tries_grow_and_a_page_that_is_not_seen_does_not_try(
    page: DashboardPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise OSError("away")

    page.open("/gold/shop/sales?last=9999999")  # no answer to this is kept yet
    page.wait(LIVE)
    page.run(NO_PAUSE)
    for seen in (True, False):
        page.run(f"({BE_SEEN})({json.dumps(seen)}), pauses.length = 0")
        with monkeypatch.context() as patch:
            patch.setattr(tables, "rows", fails)
            page.run(f"{OLDER}.click()")
            page.wait(f"{BAD} && (pauses.length > 6 || {json.dumps(not seen)})")
            grown = [3000, 6000, 12000, 24000, 48000, 60000, 60000]
            assert page.run("pauses.slice(0, 7)") == (grown if seen else [])
        page.run(f"({BE_SEEN})(true)")
        page.wait(f"{LIVE} && !{BAD}")


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


def test_a_dashboard_is_shown_once_its_file_is_corrected(
    page: DashboardPage, shop: Charted
) -> None:
    board = "dashboard: money\ntitle: Money\ncharts: {n: {kind: number, sql: FROM gold.sales}}"
    shop.board(board.replace("number", "numbr"))
    page.open("/board/money")
    page.wait(f"{BAD}?.innerText.includes('there is no dashboard money') && {LIVE}")
    page.wait(f"{ASKED}.filter((each) => each.includes('board/money')).length > 1")
    shop.board(board)
    page.wait(f"!{BAD} && document.querySelector('h1').innerText === 'Money'")


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
    with suppress(NavigatedError):
        page.run("void fetch('/logout', {method: 'POST'})")
    page.wait("document.getElementById('password')")
    page.log_in()


def test_without_a_login_of_its_own_a_page_says_where_to_log_in(page: DashboardPage) -> None:
    page.open("/")
    said = """import('/static/api.js').then(async ({ ask }) => {
      const { dataset } = document.documentElement;
      window.fetch = async () => new Response('', { status: 401 });
      dataset.login = 'no';
      const remedy = (title) => ((dataset.homeTitle = title), ask('x').catch((e) => e.remedy));
      return [await remedy(''), await remedy('Streams')];
    })"""
    assert page.run(said) == ["load this page again to log in", "log in to Airflow again"]


def test_rows_that_cannot_be_sorted_are_told_and_those_before_stay(
    page: DashboardPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*arguments: Any) -> Mapping[str, Any]:
        if arguments[1].sort:
            raise DashboardError("no order today", "come again")
        return rows(*arguments)

    page.open("/gold/shop/sales")
    # The first event of commits refreshes the page, and takes the error away.
    page.wait(f"{ASKED}.filter((each) => each.includes('/rows?')).length > 1")
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


def test_a_page_of_rows_that_are_gone_leads_to_the_last_one(
    page: DashboardPage, shop: Charted
) -> None:
    shop.sell(open_=[sale(50 + each, "app", 1, "5.00") for each in range(60)])
    page.open("/gold/shop/sales")
    page.wait("document.querySelector('.pages').innerText.includes('of 150')")
    page.run(f"{OLDER}.click(), {OLDER}.click(), {OLDER}.click(), {OLDER}.click(), {OLDER}.click()")
    page.wait("document.querySelector('.pages').innerText.includes('126 –')")
    shop.sell(open_=[sale(50, "app", 1, "5.00")])
    page.wait("document.querySelector('.pages').innerText.includes('76 – 91 of 91')")


def test_a_late_answer_does_not_replace_a_newer_one(
    page: DashboardPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*arguments: Any) -> Mapping[str, Any]:
        question = arguments[1]
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
