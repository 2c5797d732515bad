"""Held gold is released, or a replay given up, from Airflow by a person who sees the rows."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import quote

import pytest

from headgate.airflow.operators.health_check import RESULTS
from headgate.declaration.load import load
from headgate.flow.gates.documents import holds
from headgate.lake.tables.payloads.gold import GoldPayload
from headgate.lake.tables.table import Table
from tests.support import browser
from tests.support.airflow_site import CONTROL, Site
from tests.support.events import reading
from tests.support.readings import NOON
from tests.support.rounds import in_full
from tests.support.tables import read

pytestmark = [pytest.mark.e2e, pytest.mark.recovery]
HEALTH = "headgate__health"
HOSTILE = "<img src=x onerror=alert(1)>|x"
BAR = "\\|"


def decided(site: Site, run: str) -> str:
    """Approve, and wait until it is carried out. Returns the log."""
    airflow = site.airflow

    def is_over() -> bool:
        airflow.approve_if_asked(CONTROL, run, reason="a test")
        return airflow.states(CONTROL, run)["carry_out", -1] in ("success", "failed")

    airflow.wait(is_over, "nobody carries it out")
    return airflow.said(CONTROL, "carry_out")


def assert_shown(site: Site, run: str) -> None:
    """The form shows a key as it is written, and runs nothing in it."""
    if not browser.is_there:
        return
    form = f"/dags/{CONTROL}/runs/{quote(run, safe='')}/tasks/approve/mapped/0/required_actions"
    with browser.opened(site.airflow.address + form, site.folder / "profile") as page:
        site.airflow.wait(
            lambda: HOSTILE in page.run("document.body?.innerText ?? ''"), "the form has no rows"
        )
        assert page.run("document.querySelectorAll('img[src=x]').length") == 0
        assert page.run("[...document.querySelectorAll('td')].map(e => e.innerText)").count("new")


def give_up_a_replay(site: Site) -> None:
    airflow, declared = site.airflow, load(site.declared.file)
    early = NOON + timedelta(seconds=1)
    site.deliver(reading("late-and-too-much", early, site="late", value=9_999_999), arrived=early)
    lake = site.folder / "lake"
    airflow.wait(
        lambda: "late" in {row["site"] for row in read(lake, "late/per_minute")}, "it is not late"
    )
    airflow.trigger(CONTROL, action="replay late rows", table="gold.per_minute")
    airflow.wait(lambda: holds(site.layout, declared), "the replay is not held")
    run = airflow.trigger(CONTROL, action="reject")
    airflow.wait(lambda: airflow.asks(CONTROL, run), "nobody is asked")
    text = airflow.question(CONTROL, run)
    assert "`the replay of late rows after batch" in text
    assert "| `late` | new | *all* | *no row* |" in text
    said = decided(site, run)
    assert "gave up gold/per_minute, the replay of late rows" in said
    airflow.wait(lambda: not holds(site.layout, declared), f"it is still held: {said}")


@in_full
def test_a_held_version_is_released_by_whoever_approves(site: Site) -> None:
    airflow, file = site.airflow, site.declared.file
    before = site.wait_for_owner()
    text = file.read_text()
    (site.folder / "expectations").mkdir()
    rules = "expectations: [{id: sane, expect: total < 1000000}]"
    (site.folder / "expectations" / "sane.yml").write_text(rules)
    place = text.index("    allowed_lateness:")
    file.write_text(f"{text[:place]}    expectations: sane\n{text[place:]}")
    airflow.trigger(CONTROL, action="restart")
    site.wait_for_owner(other_than=before)
    declared = load(file)
    site.processes_a_file()
    # After all final windows, so it is not late.
    at = (site.final() or NOON) + timedelta(minutes=5)
    site.deliver(reading("too-much", at, site=HOSTILE, value=9_999_999), arrived=at)
    airflow.wait(lambda: holds(site.layout, declared), "it is not held")
    (held,) = holds(site.layout, declared)
    assert held.table == "per_minute"

    airflow.switch_on(HEALTH)
    run = airflow.trigger(HEALTH)
    checked = ("checks", 0)
    airflow.wait(
        lambda: airflow.states(HEALTH, run).get(checked) in ("success", "failed"), "no check ends"
    )
    assert airflow.states(HEALTH, run)[checked] == "failed"
    (problem,) = airflow.returned(HEALTH, run, "checks", key=RESULTS, map_index=0)["gate"]
    assert "per_minute" in problem
    airflow.ask("PATCH", f"/dags/{HEALTH}", {"is_paused": True})

    run = airflow.trigger(CONTROL, action="release")
    airflow.wait(lambda: airflow.asks(CONTROL, run), "nobody is asked")
    asked = airflow.question(CONTROL, run)
    assert "sane (critical): not met" in asked
    assert f"| `{HOSTILE.replace('|', BAR)}` | new |" in asked
    assert_shown(site, run)
    said = decided(site, run)
    assert "released gold/per_minute, batch" in said
    airflow.wait(lambda: not holds(site.layout, declared), f"it is not released: {said}")
    gold = Table(site.layout.storage, "gold/per_minute", pipeline=declared.name)
    gate = GoldPayload.of(gold.refresh()).gate
    assert gate is not None
    assert (gate["broken"], gate["released"]["reason"]) == (["sane"], "a test")
    give_up_a_replay(site)
    run = airflow.trigger(CONTROL, action="stop", savepiont="latest")
    airflow.wait(lambda: airflow.states(CONTROL, run)["act", -1] == "failed", "it is not refused")
    assert "has 'savepiont', but the DAG takes only: action, savepoint" in airflow.said(
        CONTROL, "act"
    )
    # The released rows stay in gold, so with the rules every later version would be held.
    file.write_text(text)
    airflow.trigger(CONTROL, action="restart")
    site.accounts_for_every_event()
