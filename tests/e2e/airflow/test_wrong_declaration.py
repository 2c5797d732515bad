"""A declaration with a mistake beside those that run.

It comes after all other tests of the site: for a while the DAGs that all streams share have tasks
for it."""

from __future__ import annotations

import pytest

from tests.support.airflow_site import STREAM, Site

pytestmark = [pytest.mark.e2e, pytest.mark.recovery]
BROKEN = "pipeline: broken\nsources: 3\n"


def test_a_mistake_is_an_import_error_that_disturbs_no_dag(site: Site) -> None:
    broken, airflow = site.folder / "pipelines/broken.yml", site.airflow
    look = site.folder / "dags/declarations.py"
    broken.write_text(BROKEN)
    look.touch()  # else Airflow would read it after half a minute
    airflow.wait(lambda: airflow.ask("GET", "/importErrors")["import_errors"], "it is not told")
    (error,) = airflow.ask("GET", "/importErrors")["import_errors"]
    assert f"{broken}:2" in error["stack_trace"]
    assert error["filename"] == "declarations.py"
    dag = airflow.ask("GET", f"/dags/{STREAM}")
    assert (dag["is_stale"], dag["has_import_errors"]) == (False, False)
    broken.unlink()
    look.touch()
    airflow.wait(
        lambda: not airflow.ask("GET", "/importErrors")["import_errors"], "it does not go away"
    )
