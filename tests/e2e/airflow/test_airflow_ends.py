"""A part of Airflow ends, or all of it, and the stream keeps running."""

from __future__ import annotations

import os
import signal

import pytest

from tests.support.airflow_site import Site
from tests.support.rounds import in_full

pytestmark = [pytest.mark.e2e, pytest.mark.recovery]


@in_full
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("component", ["triggerer", "scheduler"])
def test_a_component_that_ends_takes_no_driver_with_it(
    site: Site, component: str, how: signal.Signals
) -> None:
    before = site.wait_for_owner()
    site.airflow.wait(site.is_supervised, "the task never deferred")
    site.airflow.kill(component, how=how)
    site.processes_a_file()
    assert site.owner == before
    site.airflow.start(component)
    os.kill(before.pid, signal.SIGKILL)
    site.wait_for_owner(other_than=before)
    site.processes_a_file()


@in_full
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_all_of_airflow_ends(site: Site, how: signal.Signals) -> None:
    before = site.wait_for_owner()
    site.airflow.kill(how=how)
    site.processes_a_file()
    site.airflow.start()
    site.airflow.wait(site.is_supervised, "nobody looks after it")
    assert site.owner == before
    assert site.drivers() == [before.pid]
