"""The last task of a run, which decides the state of the run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from headgate.airflow.operators import stop_report
from headgate.airflow.operators.stop_report import StopReport
from tests.support.stream_task import FakeLauncher, about

RUN: Any = {"ti": SimpleNamespace(dag_id="shop__stream", run_id="run 1")}


@pytest.fixture(autouse=True)
def _fresh() -> None:
    FakeLauncher.forget()


def report(root: Path, **changed: str) -> StopReport:
    return StopReport(task_id="report", of="supervise", **{**about(root), **changed})


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("success", None),
        ("failed", "supervise failed: its log says why"),
        ("upstream_failed", "supervise did not run: a task before it failed"),
    ],
)
def test_a_run_fails_if_its_stream_is_not_supervised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str, why: str | None
) -> None:
    """Else its runs would follow each other without end, and nobody would be told."""
    monkeypatch.setattr(stop_report, "state_of", lambda *_: state)
    FakeLauncher.state = None
    if why is None:
        report(tmp_path).execute(RUN)
        return
    with pytest.raises(AirflowFailException, match=why):
        report(tmp_path).execute(RUN)


def test_a_wrong_declaration_is_told_and_fails_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stop_report, "state_of", lambda *_: "success")
    file = tmp_path / "shop.yml"
    file.write_text("pipeline: shop\nsources: 3\n")
    report(tmp_path, file=str(file)).execute(RUN)
    told = capsys.readouterr().out
    assert f"the ledger cannot be read: {file}" in told
    assert "0 savepoints" in told
