"""Whose turn it is. Stopping a query waits for its batch; a batch that waits for its turn must
not be waited for."""

from __future__ import annotations

import threading

import pytest

from headgate.jobs.batch_lock import BatchLock
from headgate.jobs.errors import StopRequested

PATIENCE = 20.0  # seconds until a thread that hangs is told so


def test_a_batch_that_waits_gives_up_when_the_query_is_stopped() -> None:
    turns = BatchLock()
    outcome: list[str] = []

    def batch() -> None:
        try:
            with turns.batch():
                outcome.append("ran")
        except StopRequested:
            outcome.append("gave up")

    stream = threading.Thread(target=batch, daemon=True)

    def stop() -> None:
        """As Spark's: begins while a batch begins, and waits for it."""
        stream.start()
        stream.join(PATIENCE)
        outcome.append("hangs" if stream.is_alive() else "stopped")

    turns.end(stop)
    assert outcome == ["gave up", "stopped"]
    assert turns.is_ending


def test_the_batch_that_runs_is_waited_for() -> None:
    turns = BatchLock()
    outcome: list[str] = []
    running, go_on = threading.Event(), threading.Event()

    def batch() -> None:
        with turns.batch():
            running.set()
            assert go_on.wait(PATIENCE)
            outcome.append("done")

    threads = [threading.Thread(target=batch)]
    threads[0].start()
    assert running.wait(PATIENCE)
    with turns.if_free() as free:
        assert not free
    threads.append(threading.Thread(target=turns.end, args=[lambda: outcome.append("stopped")]))
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert outcome == ["done", "stopped"]


def test_a_turn_is_given_back_after_an_error() -> None:
    turns = BatchLock()
    for turn in (turns.batch, turns.between_batches, turns.if_free):
        with pytest.raises(ZeroDivisionError), turn():
            raise ZeroDivisionError
    with turns.if_free() as free:
        assert free
