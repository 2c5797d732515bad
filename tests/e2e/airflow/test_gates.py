"""A held gold table is released from Airflow, by a person who approves it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headgate.airflow.operators.health_check import RESULTS
from headgate.declaration.load import load
from headgate.gates.documents import holds
from headgate.tables.payloads.gold import GoldPayload
from headgate.tables.table import Table
from tests.support.airflow_site import CONTROL, Site
from tests.support.events import reading
from tests.support.readings import NOON
from tests.support.rounds import in_full

pytestmark = [pytest.mark.e2e, pytest.mark.recovery]
HEALTH = "headgate__health"


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
    site.deliver(reading("too-much", at, site="North", value=9_999_999), arrived=at)
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
    airflow.wait(lambda: airflow.asks(CONTROL, run, "approve"), "nobody is asked")
    assert "sane (critical): not met" in airflow.question(CONTROL, run, "approve")

    def is_over() -> bool:
        airflow.approve_if_asked(CONTROL, run, "approve", reason="a test")
        return airflow.states(CONTROL, run)["release", -1] in ("success", "failed")

    airflow.wait(is_over, "nobody releases it")
    said = airflow.said(CONTROL, "release")
    assert "released gold/per_minute, batch" in said
    airflow.wait(lambda: not holds(site.layout, declared), f"it is not released: {said}")
    gold = Table(site.layout.storage, "gold/per_minute", pipeline=declared.name)
    gate = GoldPayload.of(gold.refresh()).gate
    assert gate is not None
    assert (gate["broken"], gate["released"]["reason"]) == (["sane"], "a test")
    # The released rows stay in gold, so with the rules every later version would be held.
    file.write_text(text)
    airflow.trigger(CONTROL, action="restart")
    site.accounts_for_every_event()
