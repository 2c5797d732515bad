"""What a card shows in a browser: figures, charts, and what a person has to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headgate.declaration.expectations.result import RuleResult
from headgate.flow.gates.documents import Hold
from headgate.flow.sources.deployed_source import UnreadInput
from headgate.history.loads.requests import LoadState
from headgate.insight.ledger.account import GoldAccount, Ledger, SilverAccount, SourceAccount
from headgate.insight.status.batch_times import BatchTime
from headgate.insight.status.freshness import Freshness, SourceFreshness
from headgate.insight.status.past import PastBackfill, PastReport, ReplayReport
from headgate.insight.status.report import Account, Notice, StreamStatus, TablesReport
from headgate.lake.control.driver_reports import Backlog, Failure, SourceProgress
from tests.support import browser, reported
from tests.support.cards import Cards, shown_cards, stream
from tests.support.waiting import wait_until

pytestmark = pytest.mark.skipif(not browser.is_there, reason="needs the package chromium")

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
ORDERS = {
    "orders": SourceProgress(60, NOW - timedelta(seconds=20), backlog=Backlog("files")),
}
JOB = replace(reported.JOB, sources=ORDERS)
RUNNING = StreamStatus(
    condition="running",
    since=NOW - timedelta(hours=1),
    restarts=0,
    operation=None,
    sources=ORDERS,
    rows=500,
    seconds=2.0,
    level=NOW - timedelta(seconds=3),
    trouble=None,
    paused=None,
    jobs=(JOB,),
)
SILVER = SilverAccount(
    *("clean", "orders"),
    n=60,
    lag=0,
    read=1088,
    duplicate=27,
    quarantined=11,
    corrected=0,
    rejected=0,
    silver=1000,
    filtered=50,
    replaced=0,
)
GOLD = GoldAccount(
    *("per_minute", "orders", "clean"),
    n=60,
    lag=0,
    pairs=2000,
    folded=1950,
    late=50,
    replayed=0,
    rows=9,
    final=8,
)
SOURCE = SourceAccount(
    "orders",
    n=60,
    read=1088,
    replayed=0,
    duplicate=27,
    differing=0,
    quarantined=11,
    corrected=0,
    files=None,
    gaps=(),
)
LEDGER = Ledger("shop", 0, (SOURCE,), (SILVER,), (GOLD,), differences=())
ACCOUNT = Account(LEDGER, final={"per_minute": NOW - timedelta(minutes=1)})


DRAWERS = "[...document.querySelectorAll('summary')]"
PAST = "Loads, replays, backfills"


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cards]:
    with shown_cards(tmp_path_factory.mktemp("cards") / "profile") as shown:
        yield shown


def orders(**changes: Any) -> dict[str, SourceProgress]:
    return {"orders": replace(ORDERS["orders"], **changes)}


def history(rows: Sequence[int], every: timedelta = timedelta(minutes=1)) -> TablesReport:
    began = NOW - len(rows) * every
    took = timedelta(seconds=1)
    batches = (BatchTime(n, began + n * every, r, took, 3 * took) for n, r in enumerate(rows, 1))
    return TablesReport(ACCOUNT, history={"orders": tuple(batches)})


def test_a_percentage_is_of_what_stands_beside_it(cards: Cards) -> None:
    cards.show(NOW, stream("shop", RUNNING, TablesReport(ACCOUNT)))
    shown = dict(zip(cards.text(".figure dt"), cards.text(".figure dd"), strict=True))
    assert shown["Duplicates"].split("\n") == ["27", "2.5 % of 1,088 read"]
    assert shown["Quarantined"].split("\n") == ["11", "1 % of 1,088 read"]
    assert shown["Late"].split("\n") == ["50", "2.5 % of 2,000 pairs"]
    cards.page.run("document.querySelector('summary').click()")
    drawn = "50 of 2,000 (2.5 %)"
    wait_until(lambda: drawn in "".join(cards.text("tbody")), "no table is drawn", 30)


def test_gold_is_as_old_as_its_commits(cards: Cards) -> None:
    """The driver has just restarted and reports that it is up to date."""
    fresh = Freshness(
        {"per_minute": NOW - timedelta(hours=4)},
        {"orders": SourceFreshness(NOW - timedelta(hours=19), NOW - timedelta(minutes=30))},
    )
    began = replace(RUNNING, since=NOW, level=NOW, sources=orders(watermark=NOW))
    cards.show(NOW, stream("shop", began, TablesReport(ACCOUNT, freshness=fresh)))
    shown = dict(zip(cards.text(".figure dt"), cards.text(".figure dd"), strict=True))
    assert shown["Gold changed"].split("\n") == ["4 h ago", "last record 30 min ago"]
    assert shown["Watermark"].split("\n")[1] == "19 h behind"
    cards.page.run("document.querySelector('summary').click()")
    # The drawer's table is drawn after the click.
    wait_until(lambda: "4 h ago" in "".join(cards.text("tbody")), "no table is drawn", 30)
    cards.show(NOW, stream("bare", began, TablesReport(ACCOUNT)))
    shown = dict(zip(cards.text(".figure dt"), cards.text(".figure dd"), strict=True))
    assert shown["Gold changed"].split("\n") == ["–", "last record unknown"]


def test_little_is_not_nothing(cards: Cards) -> None:
    one = orders(backlog=Backlog("files", 1, 5546))
    slow = replace(RUNNING, rows=49, seconds=112.0, sources=one)
    cards.show(NOW, stream("shop", slow))
    shown = dict(zip(cards.text(".figure dt"), cards.text(".figure dd"), strict=True))
    assert shown["Rows/s"].split("\n") == ["0.44", "49 in 112 s"]
    assert shown["Backlog"].split("\n") == ["1", "file, 5.4 KB"]


def test_one_large_batch_flattens_no_other(cards: Cards) -> None:
    cards.show(NOW, stream("shop", RUNNING, history([120_000, *[10] * 59])))
    assert cards.text("figcaption")[0].split("\n")[-1] == "1 cut at 20, max 120K"
    heights = cards.page.run(
        "[...document.querySelector('.chart').querySelectorAll('.bar')]"
        ".map((each) => Number(each.getAttribute('height')))"
    )
    assert len(heights) == 59
    assert min(heights) > 15, "of 44"
    (over,) = cards.text(".chart .over + .gap + .pointed title")
    assert over == "batch 1, 2026-05-04 11:01:00Z: 120,000 rows"


def test_charts_say_when(cards: Cards) -> None:
    cards.show(NOW, stream("shop", RUNNING, history([5, 6, 7, 8, 9])))
    axis = cards.text(".chart:first-child .axis span")
    assert axis == ["11:56:00Z", "11:58:00Z", "12:00:00Z"]
    assert cards.text(".chart .over") == []


def test_a_night_without_batches_is_cut(cards: Cards) -> None:
    batches = history([5] * 30).history
    assert batches is not None
    (morning,) = batches.values()
    night = timedelta(hours=14)
    both = (*(replace(each, committed=each.committed - night) for each in morning), *morning)
    cards.show(NOW, stream("shop", RUNNING, TablesReport(ACCOUNT, history={"orders": both})))
    axis = cards.text(".chart:first-child .axis span")
    assert axis[0] == "05-03 21:31Z"
    assert "05-04 11:31Z" in axis
    assert axis[-1] == "12:00Z"
    assert len(cards.text(".chart:first-child .cut")) == 1


def test_an_operation_is_shown_as_an_operation(cards: Cards) -> None:
    restoring = replace(RUNNING, condition="starting", operation="restore", restarts=2)
    cards.show(NOW, stream("a", restoring), stream("b", replace(restoring, operation="repair")))
    assert cards.text(".state") == ["restoring", "at work"]
    assert cards.text("#summary .count") == ["1 restoring", "1 at work"]
    assert "repair, for 60 min" in cards.text(".meta")[1]
    assert "restarted 2 times after a failure" in cards.text(".meta")[0]


DOWN = replace(RUNNING, condition="ended", jobs=(replace(JOB, state="stopped"),))
REWRITTEN = Failure(
    3,
    "file 7 <b>07.json</b> was rewritten after it had been read",
    "leave it out: /bin/headgate files skip '/a b/shop.yml' 7; then: /bin/headgate start shop",
    NOW - timedelta(minutes=3),
    ("/bin/headgate files skip '/a b/shop.yml' 7", "/bin/headgate start shop"),
)

IS_RED = """
(() => {
  const shown = document.querySelector(".card .note.bad strong");
  const red = getComputedStyle(document.querySelector(".state.failed")).color;
  return shown.checkVisibility() && getComputedStyle(shown).color === red;
})()
"""


def test_what_needs_a_person_stands_on_the_face_of_its_card(cards: Cards) -> None:
    failed = replace(
        DOWN, condition="failed", since=REWRITTEN.at, ended="failed", failure=REWRITTEN
    )
    finished = replace(DOWN, ended="finished")
    cards.show(NOW, stream("a", finished), stream("b", RUNNING), stream("c", failed))
    assert cards.text(".card h2")[0] == "c", "what needs somebody comes first"
    assert cards.text(".state") == ["failed", "running", "finished"]
    assert cards.text(".card[data-tone=bad] h2") == ["c"]
    (note,) = cards.text(".card > .notes > .note.bad")
    assert note.split("\n") == [
        "file 7 <b>07.json</b> was rewritten after it had been read",
        "leave it out: /bin/headgate files skip '/a b/shop.yml' 7 Copy; "
        "then: /bin/headgate start shop Copy",
        "Then press Start.",
    ]
    assert cards.page.run(IS_RED), "and not folded away"
    assert cards.text(".note code") == list(REWRITTEN.commands)


def test_a_source_that_does_not_answer_is_told_and_comes_before_what_runs(cards: Cards) -> None:
    why = "no answer from the brokers <b>:9092, for 5 min (14 attempts); the driver keeps trying"
    since = NOW - timedelta(minutes=5)
    waits = replace(RUNNING, condition="waiting", since=since, trouble=why)
    cards.show(NOW, stream("a", RUNNING), stream("b", waits))
    assert cards.text(".card h2") == ["b", "a"]
    assert cards.text(".state") == ["waiting", "running"]
    assert cards.text("#summary .count") == ["1 waiting", "1 running"]
    assert cards.text(".card .note.bad") == [why]
    assert "has not answered for 5 min" in cards.text(".card")[0]
    assert "before the outage" in cards.text(".card")[0], "it is not known to be up to date"
    assert cards.text(".card[data-tone=bad] h2") == ["b"]


def test_a_failure_that_supervision_repairs_is_shown_with_its_reason(cards: Cards) -> None:
    crash = Failure(8, "no space left on device", "make some", NOW)
    crashed = stream("shop", replace(DOWN, ended="failed", failure=crash))
    cards.show(NOW, crashed, stream("b", replace(DOWN, condition="failed", failure=REWRITTEN)))
    assert cards.text(".state") == ["failed", "failed"]
    assert cards.text("#summary .count") == ["2 failed"]
    assert cards.text(".card .note.bad")[1].split("\n") == ["no space left on device", "make some"]


def test_a_held_table_is_told_with_its_rules_and_a_way_to_release_it(cards: Cards) -> None:
    sane = RuleResult("sane", "critical", "hold", met=False, unexpected=3)
    keys = RuleResult("keys", "critical", "hold", met=False, observed="<b>2</b>")
    since = NOW - timedelta(hours=1)
    held = Hold("per_minute", 7, upto=8, since=since, at=NOW, results=(sane, keys))
    control = {**stream("shop", RUNNING)["control"], "actions": ["start", "stop", "release"]}
    tables = TablesReport(ACCOUNT, held=(held,))
    cards.show(NOW, stream("shop", RUNNING, tables, control=control))
    (note,) = cards.text(".card .note.bad")
    assert note.startswith("gold/per_minute is held at batch 7 since")
    rules = "sane (critical): not met, 3 rows break it; keys (critical): not met, it is <b>2</b>"
    assert rules in note
    assert cards.text(".card .note.bad button") == ["Release…"]
    assert cards.text(".card[data-tone=bad] h2") == ["shop"]


def test_what_the_tables_lack_is_told_with_what_to_do(cards: Cards) -> None:
    notice = Notice(
        "orders: 1 file is set aside, and none of its records is in the tables: <b>.csv (empty).",
        "see them all: /bin/headgate files list shop --unread",
        ("/bin/headgate files list shop --unread",),
    )
    files = (UnreadInput(7, "<b>.csv", "set_aside", "no field"),)
    ledger = replace(LEDGER, sources=(replace(SOURCE, files=files),))
    account = replace(ACCOUNT, ledger=ledger)
    cards.show(
        NOW,
        stream("a", RUNNING, TablesReport(ACCOUNT)),
        stream("b", RUNNING, TablesReport(account, notices=(notice,))),
    )
    assert cards.text(".card h2") == ["b", "a"]
    (note,) = cards.text(".card .note.bad")
    assert note.split("\n") == [notice.says, f"{notice.remedy} Copy"]
    ledgers = cards.text(".figure:last-child dd")
    assert ledgers[1::2] == ["1 file missing\nthe rest balances", "✓ balances\nto batch 60"]


def test_rows_that_rules_reject_have_a_figure(cards: Cards) -> None:
    silver = replace(SILVER, silver=900, rejected=100)
    account = replace(ACCOUNT, ledger=replace(LEDGER, silver=(silver, SILVER)))
    cards.show(NOW, stream("shop", RUNNING, TablesReport(account)))
    shown = dict(zip(cards.text(".figure dt"), cards.text(".figure dd"), strict=True))
    assert shown["Rejected"].split("\n") == ["100", "4.6 % of 2,176 read"]


def test_a_stream_that_ended_with_its_airflow_is_stopped(cards: Cards) -> None:
    ended = (replace(DOWN, ended="stopped"), replace(DOWN, ended="terminated"))
    cards.show(NOW, *(stream(name, each) for name, each in zip("ab", ended, strict=True)))
    assert cards.text(".state") == ["ended", "stopped"]
    assert "a signal ended it" in cards.text(".meta")[0]
    assert "a person ended its process or its Airflow" in cards.text(".meta")[1]


def test_the_time_of_a_batch_is_that_until_gold_has_it(cards: Cards) -> None:
    cards.show(NOW, stream("shop", RUNNING, history([5, 6, 7])))
    assert cards.text("figcaption")[1].startswith("Time to gold")
    said = "3 s until all gold tables had it, 1 s of it until bronze had it"
    assert said in cards.text(".chart:nth-child(2) title")[-1]


def test_what_was_done_about_the_past_is_told(cards: Cards) -> None:
    load = LoadState(
        "l-1", "30 files of a/**", "files", "reading", "", 7, 30, 1_400, "me", "orders"
    )
    gone = replace(load, id="l-2", state="stopped", why="x<b>.json has vanished")
    replays = (ReplayReport(3, 58, "per_minute", "me: the till was offline"),)
    day = NOW - timedelta(days=1)
    compared = PastBackfill("b-1", NOW, day, NOW, ("per_minute",), published=True)
    equal = replace(compared, id="b-2", end=None, differing=(), published=False)
    back = replace(compared, id="b-3", taken_back=True, by_end=True)
    back = replace(back, computed_by="other.txt, another declaration")
    past = PastReport((load, gone), replays, (back, equal, compared))
    cards.show(NOW, stream("shop", RUNNING, TablesReport(ACCOUNT, past=past)))
    assert "loading history: 7 of 30 files" in cards.text(".card .meta")[0]
    assert cards.text(".card .note.bad") == ["Load l-2 is stopped: x<b>.json has vanished"]
    cards.page.run(f"{DRAWERS}.find((each) => each.innerText === {PAST!r}).click()")
    wait_until(lambda: len(cards.text("tbody")) == 3, "no table is drawn", 30)
    loads, replayed, backfills = cards.text("tbody")
    assert "1,400" in loads
    assert "the till was offline" in replayed
    assert [line.split("\t")[1:4] for line in backfills.split("\n")] == [
        [
            "other.txt, another declaration",
            "per_minute differed: published, and taken back by a restore",
            "by their end",
        ],
        ["", "equal", "whole"],
        ["", "per_minute differed: published", "whole"],
    ]
    cards.show(NOW, stream("shop", RUNNING, TablesReport(ACCOUNT, past=PastReport((), (), ()))))
    hidden = f"{DRAWERS}.filter((each) => each.parentElement.hidden).map((e) => e.textContent)"
    assert PAST in cards.page.run(hidden)


def test_a_stream_with_rules_has_a_report(cards: Cards) -> None:
    cards.show(NOW, stream("shop", RUNNING, TablesReport(ACCOUNT)))
    assert cards.text(".card .links a") == ["DAG", "Task"]
    cards.show(NOW, stream("shop", RUNNING, TablesReport(ACCOUNT, has_rules=True)))
    assert cards.text(".card .links a") == ["DAG", "Task", "Quality"]
    address = cards.page.run("document.querySelector('.card .links a:last-child').href")
    assert address.endswith("/headgate/api/streams/shop__stream/supervise/quality?map_index=-1")


BY_AIRFLOW = {"by": "airflow", "at": "2026-05-04T11:00:00+00:00", "failed_runs": 3}
BY_A_PERSON = {"by": "person", "who": "<b>eve</b>", "at": "2026-05-03T11:00:00+00:00"}
CRASHED = replace(DOWN, ended="failed", failure=Failure(8, "no java", "install it", NOW))


@pytest.mark.parametrize(
    ("status", "pause", "note"),
    [
        (
            CRASHED,
            BY_AIRFLOW,
            "Airflow has paused its DAG at 11:00:00Z, after 3 failed runs in a row: see the last "
            "run. The stream is not started. Remove the cause, then switch the DAG on, or press "
            "Start.",
        ),
        (
            RUNNING,
            BY_A_PERSON,
            "<b>eve</b> has paused its DAG at 2026-05-03 11:00:00Z. The stream continues, but it "
            "is not restarted if it fails. Switch the DAG on. Stop",
        ),
        (
            CRASHED,
            BY_A_PERSON | {"who": None},
            "A person has paused its DAG at 2026-05-03 11:00:00Z. The stream is not started. "
            "Switch the DAG on, or press Start.",
        ),
        (
            CRASHED,
            {"by": None},
            "Its DAG is paused. The stream is not started. Switch the DAG on, or press Start.",
        ),
    ],
)
def test_a_paused_dag_says_why(
    cards: Cards, status: StreamStatus, pause: dict[str, str], note: str
) -> None:
    cards.show(NOW, stream("shop", status, pause=pause))
    assert cards.text(".card .note.warn") == [note]
    if pause == BY_AIRFLOW:
        link = cards.page.run("document.querySelector('.note.warn a').href")
        assert link.endswith("/dags/shop__stream/runs")


def test_a_reason_stands_on_a_card_once(cards: Cards) -> None:
    """One damaged log keeps the ledger and the freshness from being read, and ended the driver."""
    reason, remedy = "gold/per_minute: the log is damaged", "repair it: headgate repair shop"
    damaged = f"{reason}\n{remedy}"
    parts = dict.fromkeys(("account", "freshness"), damaged) | {"past": "x"}
    tables = TablesReport(ACCOUNT, problems=parts)
    running = stream("a", RUNNING, tables, error="no declaration")
    failure = Failure(5, reason, remedy, NOW)
    down = replace(DOWN, condition="failed", ended="failed", failure=failure)
    cards.show(NOW, running, stream("b", down, tables, error=damaged))
    shown = "[...document.querySelectorAll('.card')].map((card) => [card.querySelector('h2')"
    shown += ".textContent, ...[...card.querySelectorAll('.note')].map((e) => e.textContent)])"
    assert {name: notes for name, *notes in cards.page.run(shown)} == {
        "a": ["no declaration", f"account, freshness: {damaged}", "past: x"],
        "b": [f"{reason}{remedy}Then press Start.", "past: x"],
    }


def test_a_stream_that_finished_needs_nobody(cards: Cards) -> None:
    cards.show(NOW, stream("shop", replace(DOWN, ended="finished"), pause=BY_A_PERSON))
    assert cards.text(".state.good") == ["finished"]
    assert cards.text(".card .note") == []


@pytest.mark.parametrize(
    ("tables", "why"),
    [
        (None, "Its savepoints cannot be read now."),
        (TablesReport(ACCOUNT, problems={"savepoints": "x"}), "Its savepoints cannot be read now."),
        (TablesReport(ACCOUNT, savepoints=()), "It has no savepoint."),
        (TablesReport(), "It has no savepoint."),
    ],
)
def test_why_nothing_can_be_restored(cards: Cards, tables: TablesReport | None, why: str) -> None:
    cards.show(NOW, stream("shop", RUNNING, tables))
    found = "[...document.querySelectorAll('.actions button')]"
    title = f"{found}.find((each) => each.textContent === 'Restore…').title"
    assert cards.page.run(title) == why
