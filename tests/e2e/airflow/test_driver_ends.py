"""Whatever ends a driver, another driver replaces it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from typing import Any

import pytest

from headgate.airflow.triggers.plain_trigger import PlainTrigger
from tests.support.airflow_site import CONTROL, STREAM, SUPERVISE, Site
from tests.support.drivers import PATIENCE
from tests.support.rounds import in_full

pytestmark = [pytest.mark.e2e, pytest.mark.recovery]
KILLS = 20


def test_a_driver_that_is_killed_is_replaced(site: Site) -> None:
    airflow = site.airflow
    airflow.wait(site.is_supervised, "the task never deferred")
    site.processes_a_file()
    first = site.wait_for_owner()
    os.kill(first.pid, signal.SIGKILL)
    seconds = site.processes_a_file()
    assert site.wait_for_owner() != first
    assert seconds < PATIENCE
    assert "its driver is dead" in airflow.said(STREAM, SUPERVISE)


def test_an_outage_ends_no_driver_and_no_task(site: Site) -> None:
    """The disk of the landing folder is away, and comes back. Nobody has to do anything."""
    airflow, away = site.airflow, site.folder / "disk"
    airflow.wait(site.is_supervised, "the task never deferred")
    driver, runs = site.wait_for_owner(), len(airflow.runs(STREAM))
    before = airflow.task(STREAM, SUPERVISE)

    def status() -> dict[str, Any]:
        (stream,) = json.loads(airflow.get("/headgate/api/streams"))["streams"]
        found: dict[str, Any] = stream["status"]
        return found

    (site.folder / "landing").rename(away)
    try:
        airflow.wait(lambda: status()["condition"] == "waiting", "nobody sees the outage")
        assert f"there is no landing folder {site.folder / 'landing'}" in status()["trouble"]
        airflow.wait(lambda: "there is no landing folder" in airflow.said(STREAM, SUPERVISE), "log")
        assert site.owner == driver
    finally:
        away.rename(site.folder / "landing")
    site.processes_a_file()
    # The page's answer may be some seconds old.
    airflow.wait(lambda: status()["condition"] == "running", "the outage does not end")
    assert site.owner == driver
    assert site.is_supervised()
    after = airflow.task(STREAM, SUPERVISE)
    assert before is not None
    assert after is not None
    assert (len(airflow.runs(STREAM)), after["try_number"]) == (runs, before["try_number"])
    assert not airflow.ask("GET", f"/dags/{STREAM}")["is_paused"]


@in_full
def test_what_needs_a_person_is_reported_once_and_its_remedy_works(site: Site) -> None:
    airflow = site.airflow
    airflow.wait(site.is_supervised, "the task never deferred")
    runs, before = len(airflow.runs(STREAM)), airflow.task(STREAM, SUPERVISE)
    failure = site.lose()
    assert failure.code == 3
    airflow.wait(lambda: len(airflow.runs(STREAM)) > runs, "no run came after it")
    airflow.wait(site.is_supervised, "nobody waits")
    failed = airflow.task(STREAM, SUPERVISE, back=1)
    assert failed is not None
    assert before is not None
    assert (failed["state"], failed["try_number"]) == ("failed", before["try_number"])
    (stream,) = json.loads(airflow.get("/headgate/api/streams"))["streams"]
    told = stream["status"]["failure"]
    assert (stream["status"]["ended"], told["reason"]) == ("failed", failure.reason)
    assert site.drivers() == []

    (typed,) = re.findall(r"\S*headgate files skip .*", failure.remedy)
    done = subprocess.run(typed, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert site.drivers() == []
    airflow.trigger(CONTROL, action="start")
    site.wait_for_owner()
    site.processes_a_file()
    assert site.is_supervised()
    assert len(airflow.runs(STREAM)) == runs + 1


@in_full
def test_a_driver_that_the_system_ends_is_replaced(site: Site) -> None:
    """It gets SIGTERM, as from a machine that shuts down, and nobody has requested a stop."""
    first = site.wait_for_owner()
    site.airflow.wait(site.is_supervised, "the task never deferred")
    os.kill(first.pid, signal.SIGTERM)
    site.wait_for_owner(other_than=first)
    site.processes_a_file()
    assert len(site.drivers()) == 1


@in_full
def test_a_frozen_driver_is_replaced_and_ended(site: Site) -> None:
    frozen = site.wait_for_owner()
    os.kill(frozen.pid, signal.SIGSTOP)
    site.wait_for_owner(other_than=frozen)
    site.processes_a_file()
    assert frozen.is_dead()


@in_full
def test_time_from_a_kill_to_the_next_gold(site: Site) -> None:
    took = []
    for _ in range(KILLS):
        driver = site.wait_for_owner()
        site.airflow.wait(site.is_supervised, "the task never deferred")
        # Almost every stream has run for longer than the time in which its trigger sends no event.
        time.sleep(PlainTrigger.SETTLES + 2)
        os.kill(driver.pid, signal.SIGKILL)
        took.append(site.processes_a_file())
        # A new attempt has a new budget of restarts, so it does not pause between crashes.
        site.airflow.wait(site.is_supervised, "the task never deferred again")
        site.airflow.clear(STREAM, SUPERVISE)
        site.airflow.wait(lambda: not site.is_supervised(), "the task was not cleared")
    print("seconds from a kill to gold:", sorted(round(seconds, 1) for seconds in took))
    assert sorted(took)[int(0.95 * KILLS)] < 60
