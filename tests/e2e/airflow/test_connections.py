"""A secret that only a connection of Airflow has reaches the driver, and nothing else."""

from __future__ import annotations

from contextlib import suppress

import psutil
import pytest

from tests.support.airflow_site import STREAM, SUPERVISE, TOKEN, Site

pytestmark = [pytest.mark.e2e, pytest.mark.recovery]


def test_a_secret_is_in_the_environment_of_the_driver_alone(site: Site) -> None:
    airflow, driver = site.airflow, site.wait_for_owner()
    airflow.wait(site.is_supervised, "the task never deferred")
    assert psutil.Process(driver.pid).environ()[TOKEN] == site.secret
    commands = [" ".join(p.info["cmdline"] or []) for p in psutil.process_iter(["cmdline"])]
    assert not [each for each in commands if site.secret in each]
    # Airflow's database has it encrypted. Its logs and documents, the lake and the DAGs have none.
    files = [each for each in site.folder.rglob("*") if each.is_file()]
    found = []
    for file in files:
        with suppress(FileNotFoundError):  # it was removed meanwhile
            if site.secret.encode() in file.read_bytes():
                found.append(file)
    assert found == []
    assert site.folder / "home/airflow.db" in files
    shown = airflow.ask("GET", f"/dags/{STREAM}/tasks/{SUPERVISE}")
    assert (shown["owner"], site.secret in str(shown)) == ("data", False)
