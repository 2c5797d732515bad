"""Environment variables from connections of Airflow, which are in the environment here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Context
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from headgate.airflow.connections import NoConnectionError, variables_of
from headgate.airflow.operators.control_operator import ControlOperator
from headgate.lake.control.driver_reports import Failure, last_failure, record_failure
from headgate.lake.storage.layout import Layout
from tests.dags.test_backfill_interval import RUN, lake, task, verb
from tests.support.reported import NOON
from tests.support.stream_task import FakeLauncher, about, down, fresh, kept, layout, operator, run

__all__ = ["fresh", "lake", "layout", "verb"]  # fixtures

SECRET = "p@ss/w0rd"
CONNECTION = {
    "conn_type": "postgres",
    "host": "db.internal",
    "port": 5432,
    "login": "ann",
    "password": SECRET,
    "schema": "shop",
    "extra": {"sasl.password": "other", "tls": True, "retries": 3, "nested": {"a": 1}},
}
FROM = {"DB_PASSWORD": "shop_db.password"}


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", json.dumps(CONNECTION))
    monkeypatch.setenv("AIRFLOW_CONN_MY.DB", json.dumps({"host": "b", "password": ""}))
    return monkeypatch


@pytest.mark.usefixtures("connection")
def test_every_field_of_a_connection_can_be_a_variable() -> None:
    plain = ("host", "port", "login", "password", "schema")
    fields = (*plain, "extra.sasl.password", "extra.tls", "extra.retries")
    names = {f"V{number}": f"shop_db.{field}" for number, field in enumerate(fields)}
    values = ["db.internal", "5432", "ann", SECRET, "shop", "other", "true", "3"]
    assert [*variables_of(names).values()] == values
    uri = variables_of({"URI": "shop_db.uri"})["URI"]
    assert uri.startswith("postgres://ann:p%40ss%2Fw0rd@db.internal:5432/shop?")
    assert variables_of({"HOST": "my.db.host"}) == {"HOST": "b"}


@pytest.mark.usefixtures("connection")
@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("other.password", "DB_PASSWORD is not set: Airflow has no connection other"),
        ("my.db.password", "connection my.db has nothing in its field password"),
        ("my.db.port", "has nothing in its field port"),
        ("shop_db.extra.no_such", "has nothing in its field extra.no_such"),
        ("shop_db.extra.nested", "has no text in its field extra.nested"),
    ],
)
def test_what_is_missing_is_named(reference: str, why: str) -> None:
    with pytest.raises(NoConnectionError, match=why) as raised:
        variables_of({"DB_PASSWORD": reference})
    assert "Admin, Connections" in raised.value.remedy
    assert raised.value.exit_code == 2


def started(root: Path) -> None:
    with pytest.raises(TaskDeferred):
        operator(root, connections=FROM).execute(run("run 1"))


def test_each_start_reads_the_connection_again(
    tmp_path: Path, connection: pytest.MonkeyPatch
) -> None:
    FakeLauncher.state = None
    started(tmp_path)
    connection.setenv("AIRFLOW_CONN_SHOP_DB", json.dumps({"password": "changed"}))
    with pytest.raises(TaskDeferred) as deferred:
        operator(tmp_path, connections=FROM).resume(run("run 1"), down("dead"), **kept())
    assert FakeLauncher.given == [{"DB_PASSWORD": SECRET}, {"DB_PASSWORD": "changed"}]
    assert "changed" not in str(deferred.value.trigger.serialize())


@pytest.mark.parametrize("before", [None, Failure(3, "a file is gone", "skip it", NOON)])
def test_a_missing_connection_needs_a_person(
    tmp_path: Path, layout: Layout, before: Failure | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if a driver has run before, and failed for another reason."""
    if before is not None:
        record_failure(layout, before)
    FakeLauncher.state = "stopped"
    with pytest.raises(AirflowFailException, match="no connection shop_db") as failed:
        operator(tmp_path, connections=FROM).execute(run("run 1"))
    assert "shop__control" in str(failed.value)
    assert FakeLauncher.done == []
    found = last_failure(layout)
    assert found is not None
    assert (found.code, "shop_db" in found.reason) == (2, True)
    monkeypatch.setattr("headgate.airflow.operators.stream_operator.state_of", lambda *_: "failed")
    with pytest.raises(TaskDeferred) as deferred:
        operator(tmp_path, connections=FROM).execute(run("run 2"))
    assert deferred.value.trigger.serialize()[1]["reported"] == found.at.isoformat()


def control(root: Path, action: str) -> None:
    act = ControlOperator(task_id="act", action=action, connections=FROM, **about(root))
    act.execute(Context())


@pytest.mark.parametrize("action", ["start", "restart", "take over"])
def test_the_form_starts_with_the_variables_or_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    monkeypatch.setattr(ControlOperator, "_check", lambda *_: None)
    with pytest.raises(NoConnectionError):
        control(tmp_path, action)
    assert FakeLauncher.done == []
    control(tmp_path, "stop")
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", json.dumps(CONNECTION))
    control(tmp_path, action)
    assert FakeLauncher.given == [{"DB_PASSWORD": SECRET}]


def test_a_backfill_gets_the_variables(
    lake: Any, verb: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    verb(0)
    with pytest.raises(AirflowFailException, match="no connection shop_db"):
        task(lake, connections=FROM).execute(RUN)
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", json.dumps(CONNECTION))
    given: list[Any] = []

    def run_verb(words: Any, _: Any, variables: Any) -> tuple[int, str]:
        given.append((words, variables))
        return 3, ""

    monkeypatch.setattr("headgate.airflow.operators.backfill.run_verb", run_verb)
    with pytest.raises(AirflowFailException):
        task(lake, connections=FROM).execute(RUN)
    ((words, variables),) = given
    assert variables == {"DB_PASSWORD": SECRET}
    assert SECRET not in str(words)
