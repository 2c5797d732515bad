"""How the last run of a pipeline ended."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headgate.lake.control.driver_reports import Failure
from headgate.lake.control.driver_requests import StopRequest
from headgate.lake.control.ownership import LAYERS, Owner
from headgate.supervision.job_state import Ended, JobState, StateName, how_ended
from tests.unit.supervision.conftest import NOW

STOPPED = JobState("fused", LAYERS, "stopped", Owner(1, "here", 0.0), 3, since=NOW, renewed=NOW)
FAILURE = Failure(3, "a file is gone", "headgate files skip", NOW)


@pytest.mark.parametrize(("finished", "ended"), [(True, "finished"), (False, "terminated")])
def test_a_finished_run_differs_from_a_stopped_one(finished: bool, ended: Ended) -> None:
    assert how_ended([replace(STOPPED, finished=finished)], None, None) == ended


def test_a_failure_unless_somebody_stopped_it_since() -> None:
    assert how_ended([STOPPED], None, FAILURE) == "failed"
    earlier, since = StopRequest("", 9), StopRequest("", 9, failure=NOW.isoformat())
    assert how_ended([STOPPED], earlier, FAILURE) == "failed"
    assert how_ended([STOPPED], since, FAILURE) == "stopped"


@pytest.mark.parametrize("lasts", [True, False])
def test_a_person_differs_from_a_signal_of_the_system(lasts: bool) -> None:
    asked = StopRequest("", STOPPED.epoch, lasts=lasts)
    assert how_ended([STOPPED], asked, None) == "stopped"
    assert how_ended([STOPPED], replace(asked, epoch=STOPPED.epoch - 1), None) == "terminated"


def test_a_first_start_that_fails_has_no_job() -> None:
    assert how_ended([], None, FAILURE) == "failed"
    assert how_ended([], None, None) is None


@pytest.mark.parametrize("state", ["running", "paused", "stale", "dead"])
def test_what_lives_or_died_without_a_word_has_not_ended(state: StateName) -> None:
    assert how_ended([replace(STOPPED, state=state)], None, None) is None
