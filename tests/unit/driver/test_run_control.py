"""Stops and pauses of a run, and the lock and the latch between its threads."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.driver.errors import StopRequested
from headgate.driver.lease import Lease
from headgate.driver.run_control import BatchLock, PauseLatch, RunControl, held
from headgate.lake.control.driver_requests import request_stop
from headgate.lake.control.ownership import LAYERS
from headgate.lake.storage.documents import read_document, write_document
from headgate.lake.storage.layout import Layout

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


NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


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


def test_a_stop_is_heeded_if_it_was_requested_since_the_lease_was_taken(tmp_path: Path) -> None:
    """A single request is enough, even while Spark is still starting."""
    layout = Layout.of(str(tmp_path), "p")
    lease = Lease(layout, LAYERS, "p")
    control, stopping = RunControl(layout, "p", lease), list[bool]()
    request_stop(layout)
    lease.take()
    for _ in range(2):
        control.observe_stop_requests()
        stopping.append(control.is_stopping)
        request_stop(layout)
    lease.release()
    assert stopping == [False, True], "the start came after the first request"


@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_that_was_wrong_at_a_stop_decides_nothing(tmp_path: Path, hours: int) -> None:
    """For example, the clock is set between a stop and a start, by hand or from the network."""
    layout = Layout.of(str(tmp_path), "p")
    stopping = list[bool]()
    for asked in (True, False):
        lease = Lease(layout, LAYERS, "p")
        lease.take()
        if asked:
            request_stop(layout)
            document = read_document(layout.storage, Layout.document("stop"))
            assert document is not None
            at = datetime.fromisoformat(document["requested"]) + timedelta(hours=hours)
            shifted = document | {"requested": at.isoformat()}
            write_document(layout.storage, Layout.document("stop"), shifted)
        control = RunControl(layout, "p", lease)
        control.observe_stop_requests()
        stopping.append(control.is_stopping)
        lease.release()
    assert stopping == [True, False]


def test_a_thread_that_waits_for_a_lock_hears_a_stop_and_waits_no_longer_than_it_says() -> None:
    lock, checks = threading.Lock(), list[None]()

    def stop() -> None:
        checks.append(None)
        if len(checks) == 2:
            raise StopRequested

    with lock:
        with held(lock, stop, within=0) as is_held:
            assert not is_held
        with pytest.raises(StopRequested), held(lock, stop):
            pytest.fail("the lock is held by another thread")
    with held(lock, stop) as is_held:
        assert is_held
        assert lock.locked()
    assert not lock.locked()


def test_a_pause_begins_when_no_stream_runs_a_batch() -> None:
    latch = PauseLatch()
    with latch.passage(lambda: None):
        with latch.passage(lambda: None):
            latch.set(NOON)
            assert latch.is_closed
        assert latch.paused_since is None, "another stream still runs one"
    assert latch.paused_since == NOON
