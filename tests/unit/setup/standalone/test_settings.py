"""The environment of the components of a standalone Airflow."""

from __future__ import annotations

from pathlib import Path

import pytest

from headgate.setup.standalone.settings import AirflowSettings, dialect, environment

OUTER = {
    "PATH": "/bin",
    "AIRFLOW_HOME": "/theirs",
    "AIRFLOW__CORE__EXECUTOR": "Another",
    "_AIRFLOW__AS_LIBRARY": "1",
    "HEADGATE_AIRFLOW_DB": "postgresql://u:secret@h/d",
    "HEADGATE_ROOT": "/theirs/lake",
}


def settings(root: str | None = None, database: str | None = None) -> AirflowSettings:
    return AirflowSettings(Path("/home"), Path("/dags"), Path("/work"), root, 8080, database)


def test_nothing_of_another_airflow_gets_through() -> None:
    found = environment(settings(), OUTER)
    assert found["PATH"] == "/bin"
    assert found["AIRFLOW_HOME"] == "/home"
    assert not {"AIRFLOW__CORE__EXECUTOR", "_AIRFLOW__AS_LIBRARY", "HEADGATE_AIRFLOW_DB"} & {*found}
    assert "HEADGATE_ROOT" not in found
    assert "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN" not in found
    assert not any("secret" in value for value in found.values())


def test_connections_and_variables_of_airflow_stay() -> None:
    given = {"AIRFLOW_CONN_SHOP": "postgres://h/d", "AIRFLOW_VAR_SITE": "a"}
    found = environment(settings(), {**OUTER, "AIRFLOW_CONFIG": "/theirs/airflow.cfg", **given})
    assert given.items() <= found.items()
    assert "AIRFLOW_CONFIG" not in found


def test_it_listens_on_loopback_and_tasks_find_it() -> None:
    found = environment(settings(root="/lake"), {})
    assert found["AIRFLOW__API__HOST"] == "127.0.0.1"
    assert found["AIRFLOW__CORE__EXECUTION_API_SERVER_URL"] == "http://127.0.0.1:8080/execution/"
    assert found["AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION"] == "True"
    assert found["HEADGATE_ROOT"] == "/lake"


def test_a_busy_machine_is_waited_for() -> None:
    """Reading a DAG file may take longer than the 30 s and 50 s of Airflow's own settings."""
    found = environment(settings(), {})
    one = int(found["AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT"])
    assert 30 < one < int(found["AIRFLOW__DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT"])


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("postgresql://u:p@h/d", "postgresql+psycopg2://u:p@h/d"),
        ("postgres://h/d", "postgresql+psycopg2://h/d"),
        ("postgresql+psycopg2://h/d", "postgresql+psycopg2://h/d"),
    ],
)
def test_an_address_as_sqlalchemy_wants_it(given: str, wanted: str) -> None:
    assert dialect(given) == wanted
    found = environment(settings(database=given), {})
    assert found["AIRFLOW__DATABASE__SQL_ALCHEMY_CONN"] == wanted


@pytest.mark.parametrize("proxy", ["http_proxy", "HTTPS_PROXY", "all_proxy"])
@pytest.mark.parametrize(
    ("given", "lower", "upper"),
    [
        ({}, "127.0.0.1,localhost", "127.0.0.1,localhost"),
        ({"NO_PROXY": "a.example"}, "a.example,127.0.0.1,localhost", None),
        ({"no_proxy": " .b, localhost"}, ".b,localhost,127.0.0.1", None),
        ({"no_proxy": "a", "NO_PROXY": "b"}, "a,127.0.0.1,localhost", "b,127.0.0.1,localhost"),
        ({"no_proxy": "*"}, "*", None),
    ],
)
def test_no_component_asks_a_proxy_for_another(
    proxy: str, given: dict[str, str], lower: str, upper: str | None
) -> None:
    found = environment(settings(), {proxy: "http://proxy:3128", **given})
    assert (found["no_proxy"], found["NO_PROXY"]) == (lower, upper or lower)
    assert found[proxy] == "http://proxy:3128"


def test_without_a_proxy_nothing_is_said_of_one() -> None:
    """On macOS, the variables would replace the settings of the system."""
    found = environment(settings(), {"http_proxy": "", "no_proxy": "a"})
    assert (found["no_proxy"], "NO_PROXY" in found) == ("a", False)
