"""A sink that takes no rows, as status documents and health checks show it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from headgate.insight.status.health import HealthContext, violations
from headgate.insight.status.limits import Limits
from headgate.supervision.job_state import JobState
from tests.unit.insight.ledger.conftest import NOON, Lake, empty_lake

__all__ = ["empty_lake"]

SINCE = NOON - timedelta(hours=1)


def job(**more: Any) -> JobState:
    owner: Any = None
    stuck = {"sales": {"why": "the server is away", "since": SINCE.isoformat()}}
    return JobState("fused", ("gold",), "running", owner, 1, SINCE, NOON, stuck=stuck, **more)


def test_health_says_why_and_how_long(empty_lake: Lake) -> None:
    context = HealthContext(empty_lake.pipeline, empty_lake.layout, (job(),), NOON)
    said = "publish sales: nothing is published for 60 min: the server is away"
    assert violations("publications", context, Limits()) == (said,)
    patient = Limits(publication=timedelta(hours=1))
    assert violations("publications", context, patient) == ()
    stopped = replace(context, jobs=(replace(job(), state="stopped"),))
    assert violations("publications", stopped, Limits()) == ()
