"""The page while a person uses it: what a refresh leaves alone, and what becomes of an action."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from headgate.insight.status.freshness import Freshness
from headgate.insight.status.report import TablesReport
from tests.dags.test_page_cards import ACCOUNT, NOW, RUNNING
from tests.support import browser
from tests.support.cards import Cards, shown_cards, stream
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(not browser.is_there, reason="needs the package chromium")

LATER = NOW + timedelta(seconds=5)
FRESH = Freshness({"per_minute": NOW - timedelta(seconds=3)})
SHOP = stream("shop", RUNNING, TablesReport(ACCOUNT, freshness=FRESH))

# The test decides when the page's requests are answered, and when time passes.
HOLD = """
[window.asked, window.timers] = [{}, []];
window.fetch = (address) => new Promise((answer) => (asked[address.split("/").at(-1)] = answer));
window.setTimeout = (then) => void timers.push(then);
"""
TIME_PASSES = "timers.splice(0).forEach((then) => then())"
USE_LINES = """
window.lines = document.querySelector("pre");
lines.scrollTop = 40;
getSelection().setBaseAndExtent(lines.firstChild, 0, lines.firstChild, 6);
lines.nextElementSibling.focus();
"""
IN_USE = "[lines.scrollTop, String(getSelection()), document.activeElement.textContent]"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cards]:
    with shown_cards(tmp_path_factory.mktemp("in_use") / "profile") as shown:
        yield shown


@pytest.fixture
def cards(opened: Cards) -> Cards:
    """The card of one stream. From here on, the page's requests wait for ``answer``."""
    opened.show(NOW, SHOP)
    opened.page.run(HOLD)
    return opened


def answer(cards: Cards, name: str, content: object, status: int = 200) -> None:
    """Answer the request whose address ends with a name, once there is one; None: nobody does."""
    given = f"new Response({json.dumps(json.dumps(content))}, {{ status: {status} }})"
    given = given if content is not None else "Promise.reject(new TypeError())"
    script = f"'{name}' in asked && (asked['{name}']({given}), delete asked['{name}'])"
    wait_until(lambda: cards.page.run(script), f"{name} is not requested", 30)


def refresh(cards: Cards, *streams: object, at: datetime = LATER) -> None:
    """Answer the page's next refresh with these streams as of a time."""
    cards.page.run("document.dispatchEvent(new Event('visibilitychange'))")
    answer(cards, "streams", {"at": at.isoformat(), "streams": streams})


def click(cards: Cards, selector: str, text: str) -> None:
    found = f"[...document.querySelectorAll('{selector}')]"
    cards.page.run(f"{found}.find((each) => each.textContent === '{text}').click()")


def shows(cards: Cards, selector: str, *texts: str) -> None:
    """Wait until the page shows exactly these texts there."""
    wait_until(lambda: cards.text(selector) == [*texts], f"{selector} never is {texts}", 30)


def test_last_lines_that_are_being_read_stay_as_they_are(cards: Cards) -> None:
    click(cards, "summary", "Last lines")
    answer(cards, "log?map_index=-1", {"lines": ["a line"] * 99})
    shows(cards, "pre", "\n".join(["a line"] * 99))
    used = cards.page.run(USE_LINES + IN_USE)
    refresh(cards, SHOP)
    shows(cards, ".figures:first-child .figure:nth-child(3) b", "8 s ago")
    assert cards.page.run(IN_USE) == used == [40, "a line", "Read again"]


def test_a_table_whose_cells_change_stays_scrolled(cards: Cards) -> None:
    cards.page.resize(360)  # narrower than the table
    click(cards, "summary", "Gold tables")
    shows(cards, "td:nth-child(3)", "3 s ago")
    cards.page.run("document.querySelector('.scroll').scrollLeft = 30")
    for at, age in ((LATER, "8 s ago"), (NOW, "3 s ago")):  # what it showed before, too
        refresh(cards, SHOP, at=at)
        shows(cards, "td:nth-child(3)", age)
        assert cards.page.run("document.querySelector('.scroll').scrollLeft") == 30


def test_a_pressed_button_is_not_replaced(cards: Cards) -> None:
    click(cards, "summary", "Driver")
    shows(cards, ".path button", "Copy", "Copy")
    cards.page.run("window.before = [...document.querySelectorAll('.path button')]")
    cards.page.run("before[1].click()")
    wait_until(lambda: cards.text(".path button")[1] != "Copy", "it does not say that", 30)
    refresh(cards, SHOP)
    shows(cards, "td:last-child", "5 s ago")
    assert cards.page.run("before.map((each) => each.isConnected)") == [True, True]


def test_each_action_has_a_line_while_airflow_is_away(cards: Cards) -> None:
    click(cards, ".actions button", "Savepoint")
    answer(cards, "dagRuns", {"dag_run_id": "run 1", "state": "queued"})
    click(cards, ".actions button", "Restart")
    click(cards, "#confirm button", "Restart")
    shows(cards, ".run", "savepoint: queued · the run", "restart: requested")
    answer(cards, "dagRuns", None)
    cards.page.run(TIME_PASSES)
    answer(cards, "run%201", None)
    away = "savepoint: its state cannot be read. This is tried again. · the run"
    shows(cards, ".run:is(.warn, .bad)", away, "restart: Airflow does not answer.")
    cards.page.run(TIME_PASSES)
    answer(cards, "run%201", {"dag_run_id": "run 1", "state": "success"})
    shows(cards, ".run.good", "savepoint: done · the run")
    click(cards, ".actions button", "Savepoint")
    shows(cards, ".run", "savepoint: requested")


@pytest.mark.parametrize(
    ("status", "why"),
    [(401, "Your session is over: log in again."), (404, "Airflow refused (404): gone")],
)
def test_a_run_is_followed_until_airflow_refuses(cards: Cards, status: int, why: str) -> None:
    click(cards, ".actions button", "Savepoint")
    answer(cards, "dagRuns", {"dag_run_id": "run 1", "state": "queued"})
    shows(cards, ".run", "savepoint: queued · the run")
    cards.page.run(TIME_PASSES)
    answer(cards, "run%201", {"detail": "wait"}, 429)
    shows(cards, ".run.warn", "savepoint: its state cannot be read. This is tried again. · the run")
    cards.page.run(TIME_PASSES)
    answer(cards, "run%201", {"detail": "gone"}, status)
    shows(cards, ".run.bad", f"savepoint: its state cannot be read. {why} · the run")
    assert cards.text(".run a[href$='/dags/shop__control/runs/run%201']") == ["the run"]
    cards.page.run(TIME_PASSES)
    assert not cards.page.run("'run%201' in asked"), "and no longer"


def test_an_unknown_condition_is_shown_by_its_name(cards: Cards) -> None:
    newer = stream("z", RUNNING)
    newer["status"]["condition"] = "sleeping"
    refresh(cards, SHOP, newer)
    shows(cards, ".state", "sleeping", "running")
    assert cards.text(".count, .meta")[:3] == ["1 running", "1 sleeping", "for 60 min · batch 60"]


def test_a_fault_of_the_page_is_not_blamed_on_airflow(cards: Cards) -> None:
    trouble, faults = "#trouble:not([hidden])", cards.page.faults
    refresh(cards, SHOP | {"control": None})
    wait_until(lambda: cards.text(trouble) and faults, "nothing is said", 30)
    assert "TypeError" in faults.pop()
    assert cards.text(trouble)[0].startswith("This page has a fault: ")
    cards.page.run(TIME_PASSES)
    answer(cards, "streams", None)
    shows(cards, trouble, "Airflow does not answer. What is shown may be old.")
    refresh(cards, SHOP)
    shows(cards, trouble)
