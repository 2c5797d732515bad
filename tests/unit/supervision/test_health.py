"""Whether a stream is well, over a small pipeline's tables and documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.spec.load import load
from headgate.storage.backlog import Backlog, PartitionBacklog
from headgate.storage.ownership import LAYERS, Owner
from headgate.storage.stopping import request_stop
from headgate.supervision.health import Patient, ailments
from headgate.supervision.job_state import JobState
from headgate.supervision.limits import CHECKS, Limits
from tests.unit.ledger.conftest import DECLARATION, Lake, fill

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
JOB = JobState(
    "fused",
    LAYERS,
    "running",
    Owner(1, "here", 0.0),
    epoch=3,
    since=NOON - timedelta(days=1),
    renewed=NOON,
    n=7,
    updated=NOON,
    backlog=Backlog("files"),
)
LIMITS = Limits(late=0.4, quarantined=0.4)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION)
    lake = Lake(tmp_path / "lake", load(file))
    fill(lake)
    return lake


def seen(lake: Lake, *jobs: JobState) -> Patient:
    return Patient(lake.pipeline, lake.layout, jobs, NOON)


def test_a_stream_that_is_well(lake: Lake) -> None:
    assert not any(ailments(check, seen(lake, JOB), LIMITS) for check in CHECKS)


def test_a_pipeline_that_never_ran_is_well(lake: Lake) -> None:
    assert not any(ailments(check, seen(lake), LIMITS) for check in CHECKS)


def test_gold_that_is_old(lake: Lake) -> None:
    old = replace(JOB, updated=NOON - timedelta(minutes=11))
    assert ailments("freshness", seen(lake, old), LIMITS) == (
        "fused: not level with what there is for 0:11:00",
    )


def test_a_driver_that_is_gone(lake: Lake) -> None:
    assert "no driver runs" in ailments("freshness", seen(lake, replace(JOB, state="dead")), LIMITS)


def test_rest_is_no_alarm(lake: Lake) -> None:
    old = replace(JOB, state="stopped", updated=NOON - timedelta(days=1))
    assert ailments("freshness", seen(lake, old), LIMITS)
    request_stop(lake.layout)
    assert ailments("freshness", seen(lake, old), LIMITS) == ()
    paused = replace(old, state="paused")
    assert ailments("freshness", seen(lake, paused), LIMITS) == ()


@pytest.mark.parametrize(
    ("backlog", "told"),
    [
        (Backlog("files", 1_001), "fused: 1,001 files wait"),
        (
            Backlog("records", 5, partitions={"bids/0": PartitionBacklog(5, 901)}),
            "fused: 5 records 901 s, the oldest for 0:15:01",
        ),
    ],
)
def test_a_backlog_that_is_long(lake: Lake, backlog: Backlog, told: str) -> None:
    assert ailments("backlog", seen(lake, replace(JOB, backlog=backlog)), LIMITS) == (told,)


SHARES: Mapping[str, str] = {
    "late": "per_minute: 1 of 3 are late (33.3%, limit 5.0%)",
    "quarantine": "good: 1 of 6 are quarantined (16.7%, limit 5.0%)",
}


@pytest.mark.parametrize("check", ["late", "quarantine"])
def test_too_many_rows_beside_the_way(lake: Lake, check: str) -> None:
    """The commits of the fixture say that they are of 1970."""
    patient = replace(seen(lake, JOB), now=datetime(1970, 1, 1, tzinfo=UTC) + timedelta(minutes=5))
    assert ailments(check, patient, Limits()) == (SHARES[check],)  # type: ignore[arg-type]
    long_after = replace(patient, now=NOON)
    assert ailments(check, long_after, Limits()) == ()  # type: ignore[arg-type]


def test_a_ledger_that_does_not_balance(tmp_path: Path) -> None:
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION)
    lake = Lake(tmp_path / "lake", load(file))
    fill(lake, late_rows=())
    assert ailments("ledger", seen(lake, JOB), LIMITS) == (
        "gold/per_minute: late = rows of its late table: expected 1, found 0 (batch 1)",
    )
