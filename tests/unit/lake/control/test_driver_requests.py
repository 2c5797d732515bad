"""Which driver, supervisor and failure a stop request applies to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.lake.control.driver_reports import Failure, record_failure
from headgate.lake.control.driver_requests import (
    pause,
    paused_since,
    record_end,
    request_stop,
    resume,
    stop_asked,
    stop_requested,
)
from headgate.lake.control.ownership import LAYERS, lease_path
from headgate.lake.storage.documents import write_document
from headgate.lake.storage.layout import Layout

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
FAILURE = Failure(8, "no java", "install it", NOON)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """The layout of a pipeline whose driver and failure are from noon."""
    layout = Layout.of(str(tmp_path), "p")
    hold(layout, 3)
    record_failure(layout, FAILURE)
    return layout


def hold(layout: Layout, epoch: int, since: datetime = NOON, **more: object) -> None:
    for layer in LAYERS:
        content = {"epoch": epoch, "since": since.isoformat(), **more}
        write_document(layout.storage, lease_path(layer), content)


def test_it_is_for_what_is_there(layout: Layout) -> None:
    request_stop(layout)
    asked = stop_asked(layout)
    assert asked is not None
    assert (asked.epoch, asked.is_after(FAILURE), asked.claim) == (3, True, None)
    hold(layout, 4)
    assert stop_requested(layout, 3)
    assert not stop_requested(layout, 4), "a later driver"


def test_an_end_by_a_person_is_for_one_driver_and_no_supervisor(layout: Layout) -> None:
    record_end(layout, 3)
    asked = stop_asked(layout)
    assert asked is not None
    assert (asked.epoch, asked.lasts, asked.is_after(FAILURE)) == (3, False, False)


def test_an_end_by_a_person_replaces_no_request(layout: Layout) -> None:
    request_stop(layout)
    record_end(layout, 3)
    asked = stop_asked(layout)
    assert asked is not None
    assert asked.lasts


def test_it_is_made_beside_damaged_documents(layout: Layout) -> None:
    layout.storage.write(lease_path("silver"), b"{")
    layout.storage.write(Layout.document("stop"), b"{")
    request_stop(layout)
    asked = stop_asked(layout)
    assert asked is not None
    assert (asked.epoch, asked.claim) == (3, None)


def test_a_later_request_keeps_the_claim_whose_end_was_carried_out(layout: Layout) -> None:
    for claim, kept in ((None, None), ("one", "one"), (None, "one"), ("two", "two")):
        request_stop(layout, claim)
        asked = stop_asked(layout)
        assert asked is not None
        assert asked.claim == kept
    hold(layout, 4)
    record_end(layout, 4)
    asked = stop_asked(layout)
    assert asked is not None
    assert (asked.epoch, asked.claim) == (4, "two")


def test_a_pause_lasts_until_somebody_resumes(layout: Layout) -> None:
    assert paused_since(layout) is None
    assert pause(layout, NOON) == NOON
    assert paused_since(layout) == NOON
    assert resume(layout) == NOON
    assert paused_since(layout) is None


def test_a_second_pause_does_not_forget_when_the_first_began(layout: Layout) -> None:
    pause(layout, NOON)
    assert pause(layout, NOON + timedelta(hours=1)) == NOON
    assert paused_since(layout) == NOON


def test_what_is_not_paused_may_be_resumed(layout: Layout) -> None:
    assert resume(layout) is None
