"""The checks before a start, with the program itself, in the environment of a driver."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from headgate.airflow.operators.preflight import Preflight
from headgate.storage.claim import Claim, claim, claimed
from headgate.storage.failure import last_failure
from headgate.storage.layout import Layout
from headgate.storage.stopping import request_stop, stop_asked
from headgate.supervision.keeping import condition, step
from tests.support.stream_task import NOON
from tests.unit.ledger.conftest import DECLARATION

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
        self.declare()

    def declare(self, more: str = "") -> None:
        self.file.write_text(DECLARATION.replace("path: landing", f"path: {self.landing}") + more)

    def check(self) -> None:
        named = {"dag_id": "tiny__stream", "run_id": "one", "task_id": "preflight"}
        context: Any = {"ti": SimpleNamespace(**named, map_index=-1)}
        task = Preflight(task_id="preflight", file=str(self.file), name="tiny", root=self.root)
        task.execute(context)

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
    found = condition((), None, failure)
    assert (found, step(found, failure, held.reported)) == ("failed", "watch")
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
    assert condition((), stop_asked(project.layout), last_failure(project.layout)) == "resting"
    project.check()
