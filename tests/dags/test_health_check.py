"""All checks in one task, over a small pipeline's tables."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from headgate.airflow import HealthCheck
from headgate.declaration.load import load
from headgate.insight.status.limits import CHECKS
from headgate.lake.control.ownership import Owner
from tests.unit.insight.ledger.conftest import DECLARATION, Lake, fill
from tests.unit.supervision.conftest import lease, report


@pytest.mark.parametrize("late_rows", [(), None])
def test_one_task_has_a_result_for_every_check(tmp_path: Path, late_rows: Any) -> None:
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION)
    lake = Lake(tmp_path / "lake", load(file))
    fill(lake, **({} if late_rows is None else {"late_rows": late_rows}))
    lease(lake.layout, Owner.here())
    report(lake.layout, "fused", epoch=1, n=2)
    root = str(tmp_path / "lake")
    check = HealthCheck(task_id="checks", file=str(file), name="tiny", root=root)
    pushed: dict[str, Any] = {}
    context: Any = {"ti": SimpleNamespace(xcom_push=pushed.__setitem__)}
    with pytest.raises(AirflowFailException) as failed:
        check.execute(context)
    assert tuple(pushed["health"]) == CHECKS
    wrong = {name for name, told in pushed["health"].items() if told}
    assert wrong == ({"freshness", "ledger"} if late_rows == () else {"freshness"})
    assert {line.partition(":")[0] for line in str(failed.value).splitlines()[1:]} == wrong
