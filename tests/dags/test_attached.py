"""What a user attaches to all DAGs: it reaches every task, or only those that compute."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.definitions.callback import SyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

from headgate.airflow import build_dags
from tests.dags.test_building import add, backfill, made

EVERYTHING = ["every: 1 day, mode: late", "every: 1 day, mode: rebuild, publish: after_approval"]
COMPUTE = {"compute", "replay", "publish", "savepoint", "compact", "vacuum", "ledger"}


def tell(context: Any) -> None:
    """A callback."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made(tmp_path)
    for number, keys in enumerate(EVERYTHING):
        add(tmp_path, f"shop{number}", keys=backfill(keys))
    return tmp_path


def built(project: Path, **attached: Any) -> dict[str, DAG]:
    return build_dags(project / "pipelines", **attached)


def tasks(dags: dict[str, DAG]) -> list[Any]:
    return [task for dag in dags.values() for task in dag.tasks]


def test_the_arguments_of_a_company_reach_all_tasks_and_leave_the_supervision_as_it_is(
    project: Path,
) -> None:
    company = {
        "owner": "data",
        "queue": "spark",
        "priority_weight": 7,
        "on_failure_callback": tell,
        "retries": 0,
        "retry_delay": timedelta(hours=1),
        "start_date": datetime(2099, 1, 1, tzinfo=UTC),
        "depends_on_past": True,
        "execution_timeout": timedelta(minutes=1),
        "trigger_rule": "all_failed",
    }
    plain = {(t.dag_id, t.task_id): t for t in tasks(built(project))}
    for task in tasks(built(project, default_args=company)):
        found = task.owner, task.queue, task.priority_weight, list(task.on_failure_callback)
        assert found == ("data", "spark", 7, [tell]), task.task_id
        before = plain[task.dag_id, task.task_id]
        for name in ("retries", "retry_delay", "trigger_rule", "start_date"):
            assert getattr(task, name) == getattr(before, name), (task.task_id, name)
        assert not task.depends_on_past
        assert task.execution_timeout is None


@pytest.mark.parametrize("given", [{"pool": "spark"}, {"default_args": {"pool": "spark"}}])
def test_only_tasks_that_compute_use_the_pool(project: Path, given: Any) -> None:
    """A pool that is full, or whose slots deferred tasks hold, must not delay a restart."""
    found = {task.task_id for task in tasks(built(project, **given)) if task.pool == "spark"}
    assert found == COMPUTE


# Airflow's own module about access is deprecated.
@pytest.mark.filterwarnings("ignore:.*permissions module is deprecated")
def test_what_is_attached_to_dags(project: Path) -> None:
    access = {"Operators": {"can_read", "can_edit"}}
    dags = built(
        project,
        owner="data",
        queue="spark",
        tags=["prod"],
        on_failure_callback=tell,
        on_success_callback=[tell],
        access_control=access,
        health_schedule="*/10 * * * *",
        maintenance_schedule=None,
    )
    for dag in dags.values():
        assert {"headgate", "prod"} <= dag.tags
        assert (dag.on_failure_callback, dag.on_success_callback) == (tell, [tell])
        assert dag.access_control == {"Operators": {"DAGs": access["Operators"]}}
    assert {(task.owner, task.queue) for task in tasks(dags)} == {("data", "spark")}
    health, maintenance = dags["headgate__health"], dags["headgate__maintenance"]
    schedules: list[Any] = [health.schedule, maintenance.schedule]
    assert schedules == ["*/10 * * * *", None]
    assert "by the schedule `*/10 * * * *`" in str(health.doc_md)
    assert "whenever it is triggered" in str(maintenance.doc_md)
    assert "every 5 minutes" in str(built(project)["headgate__health"].doc_md)


def test_what_has_no_argument_is_set_on_the_dags(project: Path) -> None:
    health: Any = built(project)["headgate__health"]
    ten, since = timedelta(minutes=10), DeadlineReference.DAGRUN_QUEUED_AT
    health.deadline = DeadlineAlert(reference=since, interval=ten, callback=SyncCallback(tell))
    assert [each.interval for each in health.deadline] == [ten]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"tag": ["prod"]}, "unexpected keyword argument 'tag'"),
        ({"tags": "prod"}, r"tags is a list of texts, such as tags=\['prod'\]"),
        ({"default_args": {"onwer": "ann"}}, "no argument 'onwer'; did you mean 'owner'"),
        ({"default_args": ["owner"]}, "default_args is a dictionary"),
        ({"default_args": {"on_failure_callback": "tell"}}, "on_failure_callback is a function"),
        ({"on_success_callback": [tell, 5]}, "on_success_callback is a function"),
        ({"owner": "a", "default_args": {"owner": "b"}}, "owner is also in default_args"),
        ({"pool": 5}, "pool is a text, not 5"),
        ({"access_control": "all"}, "access_control is a dictionary"),
        ({"health_schedule": 5}, "5 is not a valid schedule"),
        ({"connections": {"A B": "a.password"}}, "'A B' is not the name of an environment"),
        ({"connections": {"A": "shop"}}, "A: 'shop' names no field: write CONNECTION.FIELD"),
        ({"connections": {"A": "shop.passwort"}}, "the fields are host, port"),
        ({"connections": ["A"]}, "connections is a dictionary"),
    ],
)
def test_a_wrong_argument_is_named(project: Path, given: Any, why: str) -> None:
    with pytest.raises((TypeError, ValueError), match=why):
        built(project, **given)
