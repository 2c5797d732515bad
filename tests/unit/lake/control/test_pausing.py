from __future__ import annotations

from datetime import UTC, datetime, timedelta

from headgate.lake.control.pausing import pause, paused_since, resume
from headgate.lake.storage.layout import Layout

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


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
