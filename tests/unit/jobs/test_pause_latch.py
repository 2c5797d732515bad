"""A pause between the thread that looks for it and the one that runs batches."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import pytest

from headgate.jobs.errors import StopRequested
from headgate.jobs.pause_latch import PauseLatch

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
PATIENCE = 10.0


def nothing() -> None:
    pass


def test_an_open_gate_lets_batches_through() -> None:
    gate = PauseLatch()
    with gate.passage(nothing):
        assert gate.at_rest_since is None
    assert not gate.is_closed


def test_the_batch_that_runs_is_finished_before_the_pause_is_told() -> None:
    gate = PauseLatch()
    with gate.passage(nothing):
        gate.set(NOON)
        assert gate.is_closed
        assert gate.at_rest_since is None
    assert gate.at_rest_since == NOON


def test_a_closed_gate_holds_a_batch_until_it_opens() -> None:
    gate, passed = PauseLatch(), threading.Event()
    gate.set(NOON)
    looked = threading.Event()

    def batch() -> None:
        with gate.passage(looked.set):
            passed.set()

    thread = threading.Thread(target=batch)
    thread.start()
    assert looked.wait(PATIENCE)
    assert not passed.is_set()
    assert gate.at_rest_since == NOON
    gate.set(None)
    assert passed.wait(PATIENCE)
    thread.join(PATIENCE)
    assert gate.at_rest_since is None


def test_a_batch_that_waits_still_hears_a_stop() -> None:
    gate = PauseLatch()
    gate.set(NOON)

    def stop() -> None:
        raise StopRequested

    with pytest.raises(StopRequested), gate.passage(stop):
        pytest.fail("a closed gate was passed")
    assert gate.at_rest_since == NOON


def test_a_batch_that_fails_leaves_the_gate_free() -> None:
    gate = PauseLatch()
    with pytest.raises(ValueError, match="bad"), gate.passage(nothing):
        raise ValueError("bad")
    gate.set(NOON)
    assert gate.at_rest_since == NOON
