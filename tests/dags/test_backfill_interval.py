"""What the task of a scheduled backfill makes of the verb's exit code."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from headgate.airflow.operators.backfill import BackfillInterval
from headgate.backfill.report import Report, TableReport
from headgate.backfill.reports import write_report
from headgate.declaration.load import load
from tests.unit.ledger.conftest import DECLARATION, Lake

DAY = datetime(2026, 5, 4, tzinfo=UTC)
NEXT = DAY + timedelta(days=1)
EMPTY = TableReport("per_minute", 1, 0, 0, 0, 0, 0, 0, "0-00", "0-00")


@pytest.fixture
def task(tmp_path: Path) -> BackfillInterval:
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION)
    Lake(tmp_path / "lake", load(file))
    about: dict[str, Any] = {"file": str(file), "name": "tiny", "root": str(tmp_path / "lake")}
    times = {"begin": DAY.isoformat(), "end": NEXT.isoformat(), "declaration": ""}
    return BackfillInterval(task_id="compute", then="verify", **times, **about)


def verb(task: BackfillInterval, monkeypatch: pytest.MonkeyPatch, *, reports: bool) -> None:
    """The verb ends with exit code 1; it may have left an empty report."""

    def run(*_: str) -> int:
        if reports:
            layout = task._opened()[1]
            at = datetime.now(UTC)
            write_report(layout, Report("b1", "tiny", at, DAY, NEXT, "digest", (EMPTY,)))
        return 1

    monkeypatch.setattr(task, "_headgate", run)


def test_a_quiet_day_is_no_failure(task: BackfillInterval, monkeypatch: pytest.MonkeyPatch) -> None:
    verb(task, monkeypatch, reports=True)
    assert task.execute({}) == {"id": "b1", "differing": [], "published": []}


def test_another_failure_is_one(task: BackfillInterval, monkeypatch: pytest.MonkeyPatch) -> None:
    verb(task, monkeypatch, reports=False)
    with pytest.raises(AirflowFailException, match="exit code 1"):
        task.execute({})
