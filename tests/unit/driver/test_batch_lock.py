"""Stopping a query waits for its batch; a batch that waits for the lock must
not be waited for."""

from __future__ import annotations

import threading

import pytest

from headgate.driver.batch_lock import BatchLock
from headgate.driver.errors import StopRequested

PATIENCE = 20.0  # seconds until a thread counts as hanging


def test_a_batch_that_waits_gives_up_when_the_query_is_stopped() -> None:
    lock = BatchLock()
    outcome: list[str] = []

    def batch() -> None:
        try:
            with lock.batch():
                outcome.append("ran")
        except StopRequested:
            outcome.append("gave up")

    stream = threading.Thread(target=batch, daemon=True)

    def stop() -> None:
        """Like Spark's stop: it runs while a batch begins, and waits for that batch."""
        stream.start()
        stream.join(PATIENCE)
        outcome.append("hangs" if stream.is_alive() else "stopped")

    lock.end(stop)
    assert outcome == ["gave up", "stopped"]
    assert lock.is_ending


def test_the_batch_that_runs_is_waited_for() -> None:
    lock = BatchLock()
    outcome: list[str] = []
    running, go_on = threading.Event(), threading.Event()

    def batch() -> None:
        with lock.batch():
            running.set()
            assert go_on.wait(PATIENCE)
            outcome.append("done")

    threads = [threading.Thread(target=batch)]
    threads[0].start()
    assert running.wait(PATIENCE)
    with lock.if_free() as free:
        assert not free
    threads.append(threading.Thread(target=lock.end, args=[lambda: outcome.append("stopped")]))
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join(PATIENCE)
    assert outcome == ["done", "stopped"]


def test_the_lock_is_released_after_an_error() -> None:
    lock = BatchLock()
    for hold in (lock.batch, lock.between_batches, lock.if_free):
        with pytest.raises(ZeroDivisionError), hold():
            raise ZeroDivisionError
    with lock.if_free() as free:
        assert free
