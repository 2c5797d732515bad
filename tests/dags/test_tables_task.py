"""Tasks on the tables of a pipeline whose sinks have secrets that Airflow does not know."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Context

from headgate.airflow import LedgerCheck, SavepointOperator
from headgate.airflow.operators import verb_operator
from headgate.airflow.operators.verb_operator import VerbOperator
from headgate.declaration.load import load
from tests.dags.test_control_operator import SECRET
from tests.unit.insight.ledger.conftest import DECLARATION, Lake, fill


def test_a_table_that_is_not_deployed_yet_fails_no_ledger(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION)
    fill(Lake(tmp_path / "lake", load(file)))
    table = DECLARATION[DECLARATION.index("  per_minute:") :]
    file.write_text(DECLARATION + table.replace("per_minute", "per_hour"))
    check = LedgerCheck(task_id="a", by_id=True, file=str(file), root=str(tmp_path / "lake"))
    assert [*check.execute(Context())["gold"]] == ["per_minute"]
    out = capsys.readouterr().out
    assert "not deployed yet, so left out: per_hour" in out
    assert "headgate upgrade" in out


def test_they_need_no_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION)
    fill(Lake(tmp_path / "lake", load(file)))
    file.write_text(DECLARATION + SECRET)
    about: dict[str, Any] = {"file": str(file), "root": str(tmp_path / "lake"), "name": "tiny"}
    context: Any = {"run_id": "run 1"}
    taken = SavepointOperator(task_id="savepoint", keep=1, **about).execute(context)
    assert (tmp_path / f"lake/tiny/_headgate/savepoints/{taken}.json").is_file()
    account = LedgerCheck(task_id="ledger", by_id=True, **about).execute(context)
    assert json.loads(json.dumps(account))
    calls: list[list[str]] = []

    def run_verb(words: list[str], _: object) -> tuple[int, str]:
        calls.append(words)
        return 0, ""

    monkeypatch.setattr(verb_operator, "run_verb", run_verb)
    VerbOperator(task_id="compact", verb=["compact"], **about).execute(context)
    assert calls == [["compact", about["file"], "--root", about["root"]]]
