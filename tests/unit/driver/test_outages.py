"""When what does not answer is tried again, and what the log says about it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from headgate.driver.outages import OutageLines, Retry, pause_after
from headgate.flow.sources.errors import SourceUnreachableError
from headgate.lake.control.driver_reports import Outage, combined_outage

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
ERROR = SourceUnreachableError("no answer from the brokers a:9092", "see whether they listen")


def test_pauses_grow_up_to_half_a_minute() -> None:
    assert [pause_after(attempts) for attempts in range(1, 9)] == [1, 2, 4, 8, 16, 30, 30, 30]
    assert pause_after(1_000_000) == 30


def test_an_outage_begins_when_the_first_attempt_without_an_answer_began() -> None:
    now = 100.0
    retry = Retry(lambda: NOON + timedelta(seconds=now - 100), lambda: now)
    retry.failed(ERROR, began=90.0)
    now = 112.0
    retry.failed(ERROR, began=102.0)
    since, tried = NOON - timedelta(seconds=10), NOON + timedelta(seconds=12)
    assert retry.outage == Outage(ERROR.message, since, tried, attempts=2)
    retry.succeeded()
    assert retry.outage is None


def test_a_clock_that_is_set_changes_no_duration() -> None:
    now, clock = 100.0, NOON
    retry = Retry(lambda: clock, lambda: now)
    retry.failed(ERROR, began=now)
    now, clock = 220.0, NOON - timedelta(days=1)
    retry.failed(ERROR, began=now)
    assert retry.outage is not None
    assert retry.outage.lasts(clock) == timedelta(minutes=2)


def test_the_next_attempt_is_due_after_a_pause_or_once_it_is_hastened() -> None:
    now = 0.0
    retry = Retry(lambda: NOON, lambda: now)
    due = [retry.is_due]
    for seconds in (0.0, 0.5, 1.0):
        if not seconds:
            retry.failed(ERROR, began=0.0)
        now = seconds
        due.append(retry.is_due)
    retry.failed(ERROR, began=1.0)
    due.append(retry.is_due)
    retry.hasten()
    assert [*due, retry.is_due] == [True, False, False, True, False, True]


@pytest.mark.parametrize("limit", [0, 60])
def test_a_limit_ends_it_with_the_same_error(limit: int) -> None:
    now = 0.0
    retry = Retry(lambda: NOON, lambda: now, timedelta(seconds=limit))
    if limit:
        retry.failed(ERROR, began=now)
        now = 59.0
        retry.failed(ERROR, began=now)
        now = 60.0
    with pytest.raises(SourceUnreachableError) as error:
        retry.failed(ERROR, began=now)
    asked = "; asked for 60 s" if limit else ""
    assert error.value.message == f"{ERROR.message}{asked}"
    assert error.value.remedy == ERROR.remedy


def test_outages_at_the_same_time_are_one() -> None:
    brokers = Outage("no answer", NOON, NOON + timedelta(minutes=2), 5)
    folder = Outage("it is gone", NOON + timedelta(minutes=1), NOON + timedelta(minutes=3), 2)
    assert combined_outage([None, brokers, brokers]) == brokers
    assert combined_outage([folder, None, brokers]) == Outage(
        "it is gone; no answer", NOON, NOON + timedelta(minutes=3), 5
    )
    assert combined_outage([None]) is None


def test_a_log_has_a_line_at_the_begin_then_at_growing_intervals_and_one_at_the_end() -> None:
    lines, said = OutageLines(), dict[int, str]()
    for second in range(0, 7 * 3_600, 5):
        now = NOON + timedelta(seconds=second)
        outage = Outage("no answer", NOON, now, attempts=1 + second // 30)
        if (line := lines.next(outage, now)) is not None:
            said[second] = line
    minutes = [0, 1, 3, 7, 15, 31, 63, 123, 183, 243, 303, 363]
    assert list(said) == [60 * minute for minute in minutes]
    assert said[0] == "no answer, for 0 s (1 attempt); the driver keeps trying, and nothing is lost"
    assert said[420].startswith("no answer, for 7 min (15 attempts); ")
    assert lines.next(None, NOON + timedelta(hours=7)) == "over after 7 h: no answer"
    assert lines.next(None, NOON + timedelta(hours=7)) is None
    assert lines.next(Outage("no answer", NOON, NOON), NOON) is not None, "another one"
