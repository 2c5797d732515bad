"""A pause, between the thread that checks for it and the thread that runs batches."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest

from headgate.driver.errors import StopRequested
from headgate.driver.pause_latch import PauseLatch

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
PATIENCE = 30.0


def nothing() -> None:
    pass


def test_an_open_latch_lets_batches_through() -> None:
    latch = PauseLatch()
    with latch.passage(nothing):
        assert latch.paused_since is None
    assert not latch.is_closed


def test_the_batch_that_runs_is_finished_before_the_pause_is_told() -> None:
    latch = PauseLatch()
    with latch.passage(nothing):
        latch.set(NOON)
        assert latch.is_closed
        assert latch.paused_since is None
    assert latch.paused_since == NOON


def test_a_closed_latch_holds_a_batch_until_it_opens() -> None:
    latch, passed = PauseLatch(), threading.Event()
    latch.set(NOON)
    looked = threading.Event()

    def batch() -> None:
        with latch.passage(looked.set):
            passed.set()

    thread = threading.Thread(target=batch)
    thread.start()
    assert looked.wait(PATIENCE)
    assert not passed.is_set()
    assert latch.paused_since == NOON
    latch.set(None)
    assert passed.wait(PATIENCE)
    thread.join(PATIENCE)
    assert latch.paused_since is None


def test_a_batch_that_waits_still_hears_a_stop() -> None:
    latch = PauseLatch()
    latch.set(NOON)

    def stop() -> None:
        raise StopRequested

    with pytest.raises(StopRequested), latch.passage(stop):
        pytest.fail("a closed latch was passed")
    assert latch.paused_since == NOON


def test_a_batch_that_fails_leaves_the_gate_free() -> None:
    latch = PauseLatch()
    with pytest.raises(ValueError, match="bad"), latch.passage(nothing):
        raise ValueError("bad")
    latch.set(NOON)
    assert latch.paused_since == NOON
