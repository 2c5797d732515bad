"""The page, the links to it, its buttons, and the dashboard."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from headgate.history.savepoints.store import savepoints
from tests.support import browser
from tests.support.airflow_site import STREAM, SUPERVISE, Site
from tests.support.browser import NavigatedError
from tests.support.rounds import IN_FULL

pytestmark = [pytest.mark.e2e, pytest.mark.recovery]
PRESSED = """
(() => {
  const buttons = [...document.querySelectorAll(".actions button")];
  const wanted = buttons.find((each) => !each.hidden && each.textContent === %s);
  if (!wanted || wanted.getAttribute("aria-disabled") === "true") return false;
  wanted.click();
  return true;
})()
"""


def test_the_task_leads_to_its_stream_and_to_sparks_log(site: Site) -> None:
    airflow, driver = site.airflow, site.wait_for_owner()
    airflow.wait(site.is_supervised, "the task never deferred")
    links = airflow.links(STREAM, SUPERVISE)
    assert links["Stream"] == f"/dags/{STREAM}/plugin/stream"
    assert "INFO" in airflow.get(links["Spark log"]) or "WARN" in airflow.get(links["Spark log"])

    def shown() -> dict[str, Any]:
        (stream,) = json.loads(airflow.get("/headgate/api/streams"))["streams"]
        return dict(stream)

    # The first answer does not wait for slow tables.
    airflow.wait(lambda: shown()["status"], "its tables are not read")
    stream = shown()
    assert (stream["name"], stream["error"]) == ("readings", None)
    assert stream["status"]["condition"] == "running"
    (job,) = stream["status"]["jobs"]
    assert job["process"].split()[0] == str(driver.pid)


def shows_the_dashboard(
    page: browser.Page, address: str, wait: Callable[[Callable[[], object], str], object]
) -> None:
    """The dashboard accepts Airflow's session, and its charts follow the commits."""

    def holds(condition: str) -> bool:
        with suppress(NavigatedError):
            return bool(page.run(f"Boolean({condition})"))
        return False

    page.errors.clear()  # Airflow's page tolerates an answer that fails, and asks again
    page.goes_to(f"{address}/headgate/dashboard/gold/readings/per_minute")
    wait(lambda: holds("document.querySelector('.uplot canvas')"), "no chart is drawn")
    wait(lambda: holds("document.getElementById('live').textContent === 'live'"), "it is not live")
    assert page.run("document.getElementById('home').pathname") == "/headgate/"
    assert page.errors == []


@pytest.mark.skipif(not browser.is_there, reason="needs the package chromium")
def test_the_page_and_its_buttons(site: Site, tmp_path: Path) -> None:
    """Use the page in a browser, as a person does."""
    airflow, before = site.airflow, site.wait_for_owner()
    airflow.wait(site.is_supervised, "the task never deferred")
    address = f"{airflow.address}/auth/token/login?next=/headgate/"
    with browser.opened(address, tmp_path / "profile") as page:

        def shows(*words: str) -> bool:
            with suppress(NavigatedError):
                shown = page.run("document.body?.innerText ?? ''")
                return all(word in shown for word in words)
            return False

        def press(label: str, action: str) -> None:
            """Press a button, and wait until its action is done."""
            airflow.wait(lambda: page.run(PRESSED % json.dumps(label)), f"no button {label}")
            page.run("document.querySelector('#confirm[open] .primary')?.click()")
            airflow.wait(lambda: shows(f"{action}: done"), f"{label} was not carried out")

        airflow.wait(lambda: shows("readings", "running"), "the page does not show it")
        taken, restarts = len(savepoints(site.layout)), site.jobs[0].restarts
        press("Savepoint", "savepoint")
        assert len(savepoints(site.layout)) == taken + 1
        link = page.run("document.getElementById('dashboard').pathname")
        assert link == "/headgate/dashboard/"
        shows_the_dashboard(page, airflow.address, airflow.wait)
        page.goes_to(f"{airflow.address}/headgate/")
        airflow.wait(lambda: shows("readings", "running"), "the page does not come back")
        if IN_FULL:
            press("Restart", "restart")
            restarted = site.wait_for_owner(other_than=before)
            press("Stop with savepoint", "stop with savepoint")
            assert site.drivers() == []
            assert len(savepoints(site.layout)) == taken + 2
            press("Restore…", "start from savepoint")
            restored = site.wait_for_owner(other_than=restarted)
            assert site.jobs[0].state == "running"
            assert site.jobs[0].restarts == restarts, "somebody asked for all of that"
            press("Take over", "take over")
            site.wait_for_owner(other_than=restored)
            press("Stop", "stop")
            assert site.drivers() == []
            airflow.wait(lambda: shows("1 stopped"), "the page does not show the stop")
            press("Start", "start")
            site.wait_for_owner()
        assert page.faults == []
    site.processes_a_file()
