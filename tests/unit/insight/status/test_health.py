"""Whether a stream is well, over a small pipeline's tables and documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.commands import pipeline_command
from headgate.declaration.kinds import GOLD
from headgate.declaration.load import load
from headgate.flow.sources.files.log import FilesLog
from headgate.insight.status.health import HealthContext, results, violations
from headgate.insight.status.limits import CHECKS, Check, Limits
from headgate.lake.control.driver_reports import (
    Backlog,
    Failure,
    Outage,
    PartitionBacklog,
    SourceProgress,
    record_failure,
)
from headgate.lake.control.driver_requests import record_end, request_stop, stop_asked
from headgate.lake.control.ownership import LAYERS, Owner
from headgate.lake.storage.files import Stat
from headgate.lake.tables.payloads.bronze import BronzePayload
from headgate.lake.tables.state import commit_time
from headgate.lake.tables.table import Table
from headgate.supervision.job_state import JobState, StateName
from headgate.supervision.supervisor import condition_of
from tests.support.reported import with_source
from tests.unit.insight.ledger.conftest import DECLARATION, Lake, fill
from tests.unit.supervision.conftest import lease

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
JOB = JobState(
    "fused",
    LAYERS,
    "running",
    Owner(1, "here", 0.0),
    epoch=3,
    since=NOON - timedelta(days=1),
    renewed=NOON,
    updated=NOON,
    sources={"events": SourceProgress(n=7, backlog=Backlog("files"))},
)
LIMITS = Limits(late=0.4, quarantined=0.4)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION)
    lake = Lake(tmp_path / "lake", load(file))
    fill(lake)
    return lake


def files_log(lake: Lake) -> FilesLog:
    lake.layout.storage.remove("_headgate/files/events")
    log = FilesLog.of(lake.layout.storage, "tiny", "events")
    log.shape.create("digest")
    log.load()
    return log


def seen(lake: Lake, *jobs: JobState) -> HealthContext:
    return HealthContext(lake.pipeline, lake.layout, jobs, NOON)


def test_a_stream_that_is_well(lake: Lake) -> None:
    assert not any(violations(check, seen(lake, JOB), LIMITS) for check in CHECKS)


def test_a_check_that_cannot_be_made_keeps_no_other_from_being_made(lake: Lake) -> None:
    Path(lake.layout.storage.uri(GOLD.path("per_minute")), "_delta_log").joinpath(
        "00000000000000000001.json"
    ).write_text("{")
    found = results(CHECKS, seen(lake, JOB), LIMITS)
    assert tuple(found) == CHECKS
    assert "cannot be checked" in found["ledger"][0]
    assert found["backlog"] == ()


def test_a_pipeline_that_never_ran_is_well(lake: Lake) -> None:
    assert not any(violations(check, seen(lake), LIMITS) for check in CHECKS)


def test_gold_that_is_old(lake: Lake) -> None:
    old = replace(JOB, updated=NOON - timedelta(minutes=11))
    assert violations("freshness", seen(lake, old), LIMITS) == (
        "fused: has neither completed a batch nor been up to date with its input for 11 min",
    )


def test_a_source_that_does_not_answer_is_an_alarm_after_a_minute(lake: Lake) -> None:
    since = NOON - timedelta(seconds=60)
    away = with_source(JOB, outage=Outage("no answer from a:9092", since, NOON, attempts=4))
    assert violations("outage", seen(lake, away), LIMITS) == ()
    before = Outage("no answer from a:9092", since - timedelta(hours=1), NOON)
    longer = with_source(JOB, outage=before)
    (said,) = violations("outage", seen(lake, longer), LIMITS)
    assert said.startswith("fused: no answer from a:9092, for 61 min")
    assert not seen(lake, longer).is_running
    assert not seen(lake, longer).is_down
    assert violations("outage", seen(lake, replace(longer, state="dead")), LIMITS) == ()


def test_a_driver_that_is_gone(lake: Lake) -> None:
    assert "no driver runs" in violations(
        "freshness", seen(lake, replace(JOB, state="dead")), LIMITS
    )


def test_a_failure_that_needs_a_person_is_an_alarm_also_of_a_first_start(lake: Lake) -> None:
    record_failure(lake.layout, Failure(2, "tiny.yml:2: sorces", "headgate plan", NOON))
    why = "no driver runs: tiny.yml:2: sorces"
    assert violations("freshness", seen(lake), LIMITS) == (why,)
    assert violations("freshness", seen(lake, replace(JOB, state="stopped")), LIMITS) == (why,)


@pytest.mark.parametrize("state", ["stopped", "dead", "stale"])
def test_rest_is_no_alarm(lake: Lake, state: StateName) -> None:
    old = replace(JOB, state=state, updated=NOON - timedelta(days=1))
    assert seen(lake, old).is_down
    assert violations("freshness", seen(lake, old), LIMITS)
    lease(lake.layout, old.owner, epoch=old.epoch)
    request_stop(lake.layout)
    assert violations("freshness", seen(lake, old), LIMITS) == ()
    assert not seen(lake, old).is_meant_to_run
    paused = replace(old, state="paused")
    assert violations("freshness", seen(lake, paused), LIMITS) == ()


def test_a_driver_that_a_person_has_ended_is_no_alarm(lake: Lake) -> None:
    """Such as with `headgate down`, until the next driver begins: its supervisor starts it."""
    ended = seen(lake, replace(JOB, state="stopped"))
    why = "no driver runs: a signal has ended it, and nobody has asked it to stop"
    assert violations("freshness", ended, LIMITS) == (why,)
    record_end(lake.layout, JOB.epoch)
    assert violations("freshness", ended, LIMITS) == ()
    assert condition_of(ended.jobs, stop_asked(lake.layout)) == "ended", "it may be started again"
    later = seen(lake, replace(JOB, state="dead", epoch=JOB.epoch + 1))
    assert violations("freshness", later, LIMITS) == ("no driver runs",)


def test_a_run_that_finished_is_no_alarm(lake: Lake) -> None:
    ended = replace(JOB, state="stopped", updated=NOON - timedelta(days=1))
    assert violations("freshness", seen(lake, ended), LIMITS)
    assert violations("freshness", seen(lake, replace(ended, finished=True)), LIMITS) == ()


@pytest.mark.parametrize(
    ("backlog", "expected"),
    [
        (Backlog("files", 1_001), "fused: 1,001 files wait, limit 1,000"),
        (
            Backlog("records", 5, partitions={"bids/0": PartitionBacklog(5, 901)}),
            "fused: 5 records wait, the oldest for 15 min",
        ),
    ],
)
def test_a_backlog_that_is_long(lake: Lake, backlog: Backlog, expected: str) -> None:
    job = with_source(JOB, backlog=backlog)
    assert violations("backlog", seen(lake, job), LIMITS) == (expected,)


@pytest.mark.parametrize(
    ("state", "is_alarm", "is_alarm_after_a_stop"),
    [
        ("running", True, True),  # it has not ended yet
        ("dead", True, False),
        ("stopped", True, False),
        ("paused", False, False),
    ],
)
def test_a_backlog_of_a_stream_that_was_stopped_or_paused_is_no_alarm(
    lake: Lake, state: StateName, is_alarm: bool, is_alarm_after_a_stop: bool
) -> None:
    job = with_source(replace(JOB, state=state), backlog=Backlog("files", 1_001))
    assert bool(violations("backlog", seen(lake, job), LIMITS)) == is_alarm
    lease(lake.layout, job.owner, epoch=job.epoch)
    request_stop(lake.layout)
    assert bool(violations("backlog", seen(lake, job), LIMITS)) == is_alarm_after_a_stop


SHARES: Mapping[str, str] = {
    "late": "per_minute: 1 of 3 are late (33.3%, limit 5.0%)",
    "quarantine": "good: 1 of 6 are quarantined (16.7%, limit 5.0%)",
}


@pytest.mark.parametrize("check", ["late", "quarantine"])
def test_too_many_rows_beside_the_way(lake: Lake, check: str) -> None:
    """The commits of the fixture have times in 1970."""
    context = replace(seen(lake, JOB), now=datetime(1970, 1, 1, tzinfo=UTC) + timedelta(minutes=5))
    assert violations(check, context, Limits()) == (SHARES[check],)  # type: ignore[arg-type]
    long_after = replace(context, now=NOON)
    assert violations(check, long_after, Limits()) == ()  # type: ignore[arg-type]


def expecting(lake: Lake, text: str, tmp_path: Path) -> Lake:
    """The same lake, with ``text`` added to the declaration of its source."""
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION.replace("    record:", f"    {text}\n    record:"))
    lake.pipeline = load(file)
    return lake


def arrive(lake: Lake, at: datetime, event_time: datetime) -> None:
    bronze = Table(lake.layout.storage, "bronze/events", pipeline="tiny")
    state = bronze.refresh().advanced_to(3, at, BronzePayload(watermark=commit_time(event_time)))
    bronze.commit(state.counting({"read": 1}, changed=True))


def asked(lake: Lake, check: Check, *jobs: JobState) -> tuple[str, ...]:
    return violations(check, seen(lake, *jobs), LIMITS)


def test_no_input_for_longer_than_expected(lake: Lake, tmp_path: Path) -> None:
    arrive(lake, NOON - timedelta(minutes=11), NOON)
    assert asked(lake, "input", JOB) == (), "nothing is expected"
    expecting(lake, "expect_input_every: 10 minutes", tmp_path)
    assert asked(lake, "input", JOB) == (
        "no record for 11 min, expected every 10 minutes: the last came at 2026-05-04 11:49:00Z",
    )
    expecting(lake, "expect_input_every: 11 minutes", tmp_path)
    assert asked(lake, "input", JOB) == ()


def test_a_stream_that_was_just_started_again_is_as_silent_as_before(
    lake: Lake, tmp_path: Path
) -> None:
    expecting(lake, "expect_input_every: 10 minutes", tmp_path)
    arrive(lake, NOON - timedelta(hours=1), NOON)
    assert asked(lake, "input", replace(JOB, epoch=9, since=NOON - timedelta(seconds=5)))


def test_where_no_record_ever_came_the_driver_has_waited(lake: Lake, tmp_path: Path) -> None:
    expecting(lake, "expect_input_every: 10 minutes", tmp_path)
    job = replace(JOB, since=NOON - timedelta(minutes=11))
    (problem,) = asked(lake, "input", job)
    assert problem.endswith("none since the driver began")
    assert asked(lake, "input", replace(job, since=NOON - timedelta(minutes=9))) == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    "job",
    [
        replace(JOB, state="paused"),
        replace(JOB, state="stopped"),  # stopped, or `run --once` has finished
        replace(JOB, state="dead"),  # nothing is read; `freshness` reports it
        replace(JOB, sources={}),  # it is starting
        with_source(JOB, backlog=None),  # the source has not answered yet
        with_source(JOB, backlog=Backlog("files", 3)),  # input has come and waits
    ],
)
def test_silence_is_reported_only_while_a_driver_waits_for_input(
    lake: Lake, tmp_path: Path, job: JobState
) -> None:
    expecting(lake, "expect_input_every: 10 minutes", tmp_path)
    arrive(lake, NOON - timedelta(days=1), NOON)
    assert asked(lake, "input", job) == ()
    assert asked(lake, "input", JOB)


def test_an_event_clock_that_is_far_behind(lake: Lake, tmp_path: Path) -> None:
    arrive(lake, NOON, NOON - timedelta(hours=19))
    assert asked(lake, "event_time", JOB) == (), "nothing is expected"
    expecting(lake, "expect_event_time_within: 1 hour", tmp_path)
    far = "the watermark is 19 h behind, expected within 1 hour"
    assert asked(lake, "event_time", JOB) == (far,)
    behind = with_source(JOB, backlog=Backlog("files", 3))
    assert asked(lake, "event_time", behind) == (f"{far}; input is unread",)
    assert asked(lake, "event_time", replace(JOB, state="paused")) == ()
    assert asked(lake, "event_time", replace(JOB, state="stopped")) == ()
    expecting(lake, "expect_event_time_within: 19 hours", tmp_path)
    assert asked(lake, "event_time", JOB) == ()


def test_an_event_clock_that_has_no_time_yet_is_not_checked(lake: Lake, tmp_path: Path) -> None:
    expecting(lake, "expect_event_time_within: 1 second", tmp_path)
    assert asked(lake, "event_time", JOB) == ()


def test_files_that_are_set_aside_are_an_alarm_until_somebody_acts(lake: Lake) -> None:
    log = files_log(lake)
    log.record([Stat(f"{name}.csv", 1, NOON) for name in "abcd"], NOON)
    assert asked(lake, "set_aside", JOB) == ()
    log.append([replace(f, status="set_aside", reason="no field") for f in log.files[:1]], NOON)
    for state in ("running", "stopped", "paused"):
        (said,) = asked(lake, "set_aside", replace(JOB, state=state))
        what = "1 file is set aside, and none of its records is in the tables: a.csv (no field)"
        see, skip = (
            pipeline_command("files list", "--unread"),
            pipeline_command("files skip", "--set-aside"),
        )
        assert said.split("\n") == [
            f"events: {what}",
            f"see them all: {see}",
            f"put each into the folder under a new name, repaired, then: {skip}",
        ]
    log.append([replace(f, status="set_aside", reason="no field") for f in log.files[1:]], NOON)
    (said,) = asked(lake, "set_aside", JOB)
    assert "4 files are set aside, and none of their records is in the tables: a.csv" in said
    assert "c.csv (no field) and 1 more" in said
    log.append([replace(file, status="skipped") for file in log.files], NOON)
    assert asked(lake, "set_aside", JOB) == ()


def test_a_ledger_that_does_not_balance(tmp_path: Path) -> None:
    file = tmp_path / "tiny.yml"
    file.write_text(DECLARATION)
    lake = Lake(tmp_path / "lake", load(file))
    fill(lake, late_rows=())
    assert violations("ledger", seen(lake, JOB), LIMITS) == (
        "gold/per_minute: late = rows of its late table: expected 1, found 0 (batch 1)",
    )


def test_a_gold_table_that_is_not_deployed_yet_is_no_problem(lake: Lake) -> None:
    file = lake.pipeline.file
    text = file.read_text()
    file.write_text(text + text[text.index("  per_minute:") :].replace("per_minute", "per_hour"))
    context = HealthContext(load(file), lake.layout, (JOB,), NOON)
    assert not any(violations(check, context, LIMITS) for check in CHECKS)
