"""Calls that batches do not wait for."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from headgate.flow.publish.background import Background


@pytest.fixture
def background() -> Iterator[Background[int]]:
    made: Background[int] = Background("test")
    yield made
    made.close(lambda: None)


def test_a_call_is_not_waited_for(background: Background[int]) -> None:
    go_on = threading.Event()

    def call() -> int:
        assert go_on.wait(60)
        return 7

    background.begin(call)
    assert background.is_busy
    assert not background.has_ended(0.01)
    go_on.set()
    assert background.has_ended(60)
    assert background.take() == 7
    assert not background.is_busy


def test_an_error_is_raised_where_the_result_is_taken(background: Background[int]) -> None:
    background.begin(lambda: 1 // 0)
    assert background.has_ended(60)
    with pytest.raises(ZeroDivisionError):
        background.take()
    background.begin(lambda: 2)
    assert background.has_ended(60)
    assert background.take() == 2


def test_the_last_call_comes_after_the_one_under_way() -> None:
    background: Background[int] = Background("test")
    seen: list[str] = []
    begun = threading.Event()

    def call() -> int:
        begun.set()
        while not background.is_closed:
            pass
        seen.append("call")
        return 0

    background.begin(call)
    assert begun.wait(60)
    background.close(lambda: seen.append(threading.current_thread().name))
    assert seen == ["call", "test"]
    assert "test" not in {thread.name for thread in threading.enumerate()}


def test_nothing_begins_a_thread_before_the_first_call() -> None:
    background: Background[int] = Background("never")
    seen: list[str] = []
    background.close(lambda: seen.append("last"))
    assert seen == ["last"]
    assert "never" not in {thread.name for thread in threading.enumerate()}
