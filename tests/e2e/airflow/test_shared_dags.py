"""The DAG that controls a stream, and the DAGs that check and maintain all streams."""

from __future__ import annotations

import pytest

from headgate.airflow.operators.health_check import RESULTS
from headgate.history.savepoints.savepoint import Savepoint
from headgate.history.savepoints.store import savepoints
from headgate.insight.status.limits import CHECKS
from headgate.lake.storage.layout import Layout
from tests.support.airflow_site import CONTROL, Site
from tests.support.drivers import PATIENCE
from tests.support.rounds import IN_FULL, in_full

pytestmark = [pytest.mark.e2e, pytest.mark.recovery]


@in_full
def test_restart_and_savepoint_from_the_form(site: Site) -> None:
    before = site.wait_for_owner()
    site.airflow.trigger(CONTROL, action="stop with savepoint")
    site.airflow.wait(lambda: not site.drivers(), "the driver runs on")
    path = Layout.savepoint("").rpartition("/")[0]
    site.airflow.wait(lambda: site.layout.storage.list(path), "no savepoint was taken")
    site.airflow.trigger(CONTROL, action="start from savepoint", savepoint="latest")
    site.wait_for_owner(other_than=before)
    site.processes_a_file()


@pytest.mark.parametrize(
    ("dag", "tasks"),
    [
        ("headgate__health", {"checks"}),
        ("headgate__maintenance", {"reconcile", "savepoint", "compact", "vacuum", "ledger"}),
    ],
)
def test_the_dags_that_all_streams_share(site: Site, dag: str, tasks: set[str]) -> None:
    """They run beside the driver. There are far more hostile events than in a healthy stream, so
    two checks fail."""
    airflow, driver = site.airflow, site.wait_for_owner()
    site.processes_a_file()  # so the hostile events are in the tables
    airflow.switch_on(dag)  # its schedule starts a run at once
    airflow.wait(lambda: airflow.runs(dag), f"{dag} does not run")
    # In a full run, another test has run it before, while a gate held a table.
    run = airflow.trigger(dag) if IN_FULL else str(airflow.runs(dag)[-1]["dag_run_id"])
    over = {"success", "failed"}
    airflow.wait(
        lambda: (
            set(airflow.states(dag, run).values()) <= over
            and len(airflow.states(dag, run)) == len(tasks)
        ),
        f"{dag} does not end",
        3 * PATIENCE,  # a task that failed is tried again after a minute
    )
    failed = {task for (task, _), state in airflow.states(dag, run).items() if state == "failed"}
    assert failed == ({"checks"} if dag == "headgate__health" else set())
    if dag == "headgate__health":
        results = airflow.returned(dag, run, "checks", key=RESULTS, map_index=0)
        assert tuple(results) == CHECKS
        assert {check for check, wrong in results.items() if wrong} == {"late", "quarantine"}
        told = {"task checks", f"run {dag}"}
        airflow.wait(lambda: told <= {*site.told()}, "the callbacks were not called")
    airflow.ask("PATCH", f"/dags/{dag}", {"is_paused": True})
    assert site.owner == driver
    if dag == "headgate__maintenance":
        taken = [each for each in savepoints(site.layout) if isinstance(each, Savepoint)]
        assert dag in {savepoint.note for savepoint in taken}
