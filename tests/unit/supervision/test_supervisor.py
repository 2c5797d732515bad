"""What a supervisor observes, and what it tolerates."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import get_args

import pytest

from headgate.lake.control.driver_reports import (
    Failure,
    Outage,
    SourceFailure,
    SourceProgress,
)
from headgate.lake.control.driver_requests import StopRequest
from headgate.lake.control.ownership import LAYERS
from headgate.supervision.job_state import JobState, StateName
from headgate.supervision.supervisor import (
    DOWN,
    Observation,
    RestartPolicy,
    StreamCondition,
    SupervisorStep,
    is_crash,
    observe,
    supervisor_step,
)
from tests.support.reaper import REPOSITORY
from tests.support.reported import JOB, NOON, at_b, with_source

STUCK = timedelta(minutes=15)

FOR_IT, EARLIER = StopRequest("", JOB.epoch), StopRequest("", JOB.epoch - 1)


def seen(
    *jobs: JobState,
    after: timedelta = timedelta(),
    before: Observation | None = None,
    stop_asked: StopRequest | None = None,
    failure: Failure | None = None,
) -> Observation:
    now = NOON + after
    return observe(jobs, now, before, stop_asked=stop_asked, stuck_after=STUCK, failure=failure)


@pytest.mark.parametrize(
    ("state", "condition"),
    [("running", "running"), ("paused", "paused"), ("dead", "dead"), ("stale", "dead")],
)
def test_what_a_job_says_of_itself(state: StateName, condition: StreamCondition) -> None:
    assert seen(replace(JOB, state=state)).condition == condition


def test_nothing_ran_yet() -> None:
    assert seen().condition == "absent"


def test_an_operation_makes_no_progress_and_is_not_stuck() -> None:
    first = seen(replace(JOB, operation="restore"))
    found = seen(replace(JOB, operation="restore"), after=STUCK * 2, before=first)
    assert (first.condition, found.condition) == ("starting", "starting")
    assert seen(JOB, after=STUCK * 2, before=seen(JOB)).condition == "stuck"


@pytest.mark.parametrize(
    ("found", "expected"),
    [(each, "start") for each in DOWN]
    + [(each, "watch") for each in ("starting", "running", "waiting", "paused", "resting")],
)
def test_a_supervisor_starts_what_is_down_and_watches_all_else(
    found: StreamCondition, expected: SupervisorStep
) -> None:
    assert supervisor_step(found, failure(7), None) == expected


def test_a_failure_that_needs_a_person_is_reported_once() -> None:
    why = failure(5)
    assert supervisor_step("failed", why, None) == "report"
    assert supervisor_step("failed", why, why.at) == "watch"
    assert supervisor_step("failed", why, why.at - timedelta(seconds=1)) == "report", (
        "of an earlier failure"
    )
    assert supervisor_step("failed", None, None) == "watch"


def test_a_job_whose_tables_are_not_open_yet() -> None:
    assert seen(replace(JOB, sources={})).condition == "starting"


@pytest.mark.parametrize("state", ["stopped", "dead", "stale"])
def test_a_stop_that_was_asked_for_is_rest(state: StateName) -> None:
    """Also if the driver was dead before: it must not be started again."""
    stopped = replace(JOB, state=state)
    assert seen(stopped, stop_asked=FOR_IT).condition == "resting"


def test_a_stop_of_an_earlier_driver_does_not_hold_for_one_that_died() -> None:
    dead = replace(JOB, state="dead")
    assert seen(dead, stop_asked=EARLIER).condition == "dead"


def test_a_stop_holds_for_a_stream_whose_start_fails_before_it_has_a_job() -> None:
    later = StopRequest("", 0, failure=NOON.isoformat())
    assert seen(failure=failure(8), stop_asked=later).condition == "resting"
    assert seen(failure=failure(8), stop_asked=StopRequest("", 0)).condition == "absent"
    assert seen(stop_asked=later).condition == "absent"


@pytest.mark.parametrize("asked", [None, EARLIER])
def test_a_stop_that_nobody_asked_this_driver_for_is_an_end(asked: StopRequest | None) -> None:
    assert seen(replace(JOB, state="stopped"), stop_asked=asked).condition == "ended"


def test_one_dead_layer_is_enough() -> None:
    layers = [replace(JOB, job=layer, layers=(layer,)) for layer in LAYERS]
    assert seen(*layers[:2], replace(layers[2], state="dead")).condition == "dead"


def test_a_driver_that_makes_no_progress_is_stuck() -> None:
    first = seen(JOB)
    waiting = seen(JOB, after=STUCK, before=first)
    assert waiting.condition == "running"
    stuck = seen(JOB, after=STUCK + timedelta(seconds=1), before=waiting)
    assert stuck.condition == "stuck"
    assert stuck.condition in DOWN


def away(tried: timedelta) -> JobState:
    return with_source(JOB, outage=Outage("no answer", NOON, NOON + tried))


def test_a_driver_that_waits_for_its_source_is_left_alone_as_long_as_it_tries() -> None:
    """Another driver could do no more; and an outage of an hour is no crash."""
    found = seen(JOB)
    for minutes in range(60):
        tried = timedelta(minutes=minutes)
        found = seen(away(tried), after=tried, before=found)
        assert (found.condition, supervisor_step(found.condition, None, None)) == (
            "waiting",
            "watch",
        )
    hung = seen(away(tried), after=tried + 2 * STUCK, before=found)
    assert hung.condition == "stuck", "it does not even try"


def test_a_driver_does_not_wait_for_the_history_of_a_load() -> None:
    """Its stream goes on; if it does not, the attempts to reach the history do not hide that."""
    found = seen(JOB)
    for minutes in range(17):
        tried = timedelta(minutes=minutes)
        of_load = Outage("no answer", NOON, NOON + tried)
        found = seen(replace(JOB, load_outage=of_load), after=tried, before=found)
        assert found.condition == ("running" if tried <= STUCK else "stuck")


AWAY = SourceProgress(outage=Outage("no answer", NOON, NOON))
BROKEN = SourceProgress(failure=SourceFailure("it was rewritten", "put it back", NOON))
GOOD = SourceProgress(7)


@pytest.mark.parametrize(
    ("b", "c", "condition", "later"),
    [
        (GOOD, AWAY, "running", "stuck"),
        (GOOD, BROKEN, "running", "stuck"),
        (AWAY, BROKEN, "waiting", "stuck"),
        (BROKEN, BROKEN, "waiting", "waiting"),
    ],
)
def test_a_driver_waits_if_none_of_its_sources_can_be_read(
    b: SourceProgress, c: SourceProgress, condition: str, later: str
) -> None:
    """Another driver could not read them either."""
    job = replace(JOB, sources={"b": b, "c": c})
    first = seen(job)
    assert first.condition == condition
    assert seen(job, after=2 * STUCK, before=first).condition == later


def test_a_pause_is_more_than_an_outage_and_a_dead_driver_does_not_wait() -> None:
    waits = away(timedelta())
    assert seen(replace(waits, state="paused")).condition == "paused"
    assert seen(replace(waits, state="dead")).condition == "dead"
    assert seen(replace(waits, state="stopped"), stop_asked=FOR_IT).condition == "resting"
    assert seen(waits, failure=failure(3)).condition == "waiting"


@pytest.mark.parametrize("code", [1, 4, 6, 7, 8, 70])
def test_a_failure_of_the_machine_is_no_crash(code: int) -> None:
    assert is_crash(None)
    assert is_crash(failure(code)) == (code != 8)


@pytest.mark.parametrize("news", [{"sources": at_b(n=8)}, {"updated": NOON}, {"epoch": 4}])
def test_a_batch_or_an_up_to_date_report_is_progress(news: dict[str, object]) -> None:
    observed = seen(replace(JOB, **news), after=2 * STUCK, before=seen(JOB))  # type: ignore[arg-type]
    assert observed.condition == "running"


def test_a_paused_stream_is_not_stuck() -> None:
    paused = replace(JOB, state="paused")
    assert seen(paused, after=2 * STUCK, before=seen(paused)).condition == "paused"


def failure(code: int) -> Failure:
    return Failure(code, "why", "what to type", NOON)


@pytest.mark.parametrize("state", ["stopped", "dead", None])
@pytest.mark.parametrize("code", [2, 3, 5])
def test_what_needs_a_person_is_not_restarted(state: StateName | None, code: int) -> None:
    jobs = [] if state is None else [replace(JOB, state=state)]
    failed = seen(*jobs, failure=failure(code))
    assert failed.condition == "failed"
    assert failed.condition not in DOWN


@pytest.mark.parametrize("code", [1, 7, 8, 70])
def test_what_a_restart_may_correct_is_restarted(code: int) -> None:
    assert seen(replace(JOB, state="stopped"), failure=failure(code)).condition in DOWN


def test_a_failure_is_over_when_somebody_starts_or_stops_the_stream() -> None:
    assert seen(JOB, failure=failure(3)).condition == "running"
    stopped, later = replace(JOB, state="stopped"), replace(FOR_IT, failure=NOON.isoformat())
    assert seen(stopped, failure=failure(3), stop_asked=later).condition == "resting"
    assert seen(stopped, failure=failure(3), stop_asked=FOR_IT).condition == "failed"


BUDGET = RestartPolicy(crashes=3, within=timedelta(hours=1), first=timedelta(seconds=5))


def test_crashes_of_long_ago_are_forgiven() -> None:
    crashes = [NOON - timedelta(minutes=m) for m in (10, 20, 30, 61)]
    assert not BUDGET.is_spent(crashes, NOON)
    assert BUDGET.is_spent([*crashes, NOON], NOON)


def test_pauses_double_and_have_a_limit() -> None:
    pauses = [BUDGET.pause([NOON] * n, NOON).total_seconds() for n in range(10)]
    assert pauses == [0, 0, 5, 10, 20, 40, 80, 160, 300, 300]


def test_the_docs_explain_every_condition() -> None:
    text = (REPOSITORY / "docs/operations.md").read_text(encoding="utf-8")
    (table,) = re.findall(r"^\| `condition` .*\n((?:\|.*\n)+)", text, re.M)
    assert re.findall(r"^\| `(\w+)` ", table, re.M) == [*get_args(StreamCondition)]
