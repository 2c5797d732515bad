"""Which end of a task stops its stream."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from headgate.airflow.task_state import is_to_stop
from headgate.lake.control.claim import Claim
from headgate.lake.control.driver_requests import StopRequest

WATCHES = Claim("one", ("shop__stream", "run 1", "supervise"), datetime(2026, 5, 4, tzinfo=UTC))
IS_OVER = replace(WATCHES, is_over=True)
BY_A_PERSON = StopRequest("", 9)
EARLIER = StopRequest("", 9, claim="zero")
FOR_IT = StopRequest("", 9, claim="one")


@pytest.mark.parametrize("asked", [None, BY_A_PERSON, EARLIER])
@pytest.mark.parametrize(
    ("state", "stops"),
    [
        ("failed", True),
        ("success", True),
        ("skipped", True),  # its run was marked
        ("removed", True),
        ("deleted", True),
        ("upstream_failed", False),  # it was cleared, and then a task before it failed
        ("up_for_retry", False),
        ("None", False),  # it was cleared
        ("scheduled", False),
        ("queued", False),
        ("running", False),
        ("deferred", False),
    ],
)
def test_the_state_of_the_task_decides(state: str, asked: StopRequest | None, stops: bool) -> None:
    """A stop that a person requested earlier, while the same task watched, does not matter: the
    stream was started again since."""
    assert is_to_stop(WATCHES, state, asked) == stops


@pytest.mark.parametrize("state", ["failed", "success", "deleted"])
def test_an_end_stops_the_stream_once(state: str) -> None:
    assert not is_to_stop(WATCHES, state, FOR_IT)


@pytest.mark.parametrize("held", [None, IS_OVER])
@pytest.mark.parametrize("asked", [None, BY_A_PERSON, EARLIER, FOR_IT])
def test_a_task_that_did_not_watch_was_not_ended_by_hand(
    held: Claim | None, asked: StopRequest | None
) -> None:
    assert not is_to_stop(held, "failed", asked)


def test_an_unknown_task_may_be_of_another_database() -> None:
    assert not is_to_stop(WATCHES, "deleted", None, if_deleted=False)
    assert is_to_stop(WATCHES, "failed", None, if_deleted=False)
