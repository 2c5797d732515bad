"""The checks before a start, with the program itself, in the environment of a driver."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from headgate.airflow.operators.preflight import Preflight
from headgate.lake.control.claim import Claim, claim, claimed
from headgate.lake.control.driver_reports import forget_failure, last_failure
from headgate.lake.control.driver_requests import request_stop, stop_asked
from headgate.lake.storage.layout import Layout
from headgate.supervision.launcher import LOCAL
from headgate.supervision.preflight import StartProblem
from headgate.supervision.supervisor import condition_of, supervisor_step
from tests.support.reported import NOON
from tests.support.stream_task import FakeLauncher
from tests.unit.insight.ledger.conftest import DECLARATION

SECRET = """
publish:
  out:
    from: gold.per_minute
    when: final
    webhook: {url: "http://127.0.0.1:9/", secret: "${env:AIRFLOW_CONN_OUT}"}
"""


class Project:
    def __init__(self, folder: Path) -> None:
        self.file, self.root = folder / "tiny.yml", str(folder / "lake")
        self.landing = folder / "landing"
        self.layout = Layout.of(self.root, "tiny")
        self.launcher = LOCAL
        self.declare()

    def declare(self, more: str = "") -> None:
        self.file.write_text(DECLARATION.replace("path: landing", f"path: {self.landing}") + more)

    def check(self) -> None:
        named = {"dag_id": "tiny__stream", "run_id": "one", "task_id": "preflight"}
        context: Any = {"ti": SimpleNamespace(**named, map_index=-1)}
        about = {"file": str(self.file), "name": "tiny", "root": self.root}
        Preflight(task_id="preflight", launcher=self.launcher, **about).execute(context)

    def refused(self) -> str:
        with pytest.raises(AirflowFailException) as failed:
            self.check()
        return str(failed.value)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.slow
def test_a_landing_folder_that_was_never_there_is_a_failure_of_the_stream_once(
    project: Project,
) -> None:
    said = project.refused()
    assert f"source: there is no landing folder {project.landing}\nmkdir -p" in said
    failure, held = last_failure(project.layout), claimed(project.layout)
    assert failure is not None
    assert held is not None
    assert (failure.code, failure.reason) == (3, f"there is no landing folder {project.landing}")
    found = condition_of((), None, failure)
    assert (found, supervisor_step(found, failure, held.reported)) == ("failed", "watch")
    project.check()  # the next run: `supervise` waits until the stream is started
    project.landing.mkdir()
    project.check()


@pytest.mark.slow
def test_it_sees_the_declaration_and_the_secrets_as_a_driver_does(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver has no variable of Airflow: one that this process has does not help it."""
    monkeypatch.setenv("AIRFLOW_CONN_OUT", "of Airflow")
    project.landing.mkdir()
    project.declare(SECRET)
    assert "AIRFLOW_CONN_OUT" in project.refused()
    project.declare("sources: 3\n")
    before = claimed(project.layout)
    claim(project.layout, Claim("a token", ("another",), NOON))
    assert before is not None
    assert "tiny.yml:" in project.refused()
    held = claimed(project.layout)
    assert held is not None
    assert (held.token, held.is_over) == ("a token", False), "it is still to be found"


@pytest.mark.slow
def test_a_stream_that_is_stopped_on_request_does_not_fail(project: Project) -> None:
    project.refused()
    request_stop(project.layout)
    assert condition_of((), stop_asked(project.layout), last_failure(project.layout)) == "resting"
    project.check()


@pytest.mark.parametrize("code", [8, 3])
def test_a_stream_that_has_run_is_kept_from_starting_only_if_a_person_is_needed(
    project: Project, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """`supervise` starts a driver for as long as a disk is full. Three failed runs would pause the
    DAG."""
    problem = StartProblem("folder", "the disk is full", "free some space", code, ())
    monkeypatch.setattr(Preflight, "_problems", lambda _: (problem,))
    with pytest.raises(AirflowException, match="the disk is full"):
        project.check()
    FakeLauncher.forget()
    FakeLauncher.state = "dead"
    project.launcher = f"{FakeLauncher.__module__}:FakeLauncher"
    if code == 8:
        project.check()
    else:
        forget_failure(project.layout)
        assert "the disk is full" in project.refused()
