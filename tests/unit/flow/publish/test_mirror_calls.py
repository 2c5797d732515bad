"""Calls that batches do not wait for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from headgate.flow.publish import mirror_calls as module
from headgate.flow.publish.mirror_calls import Background, Call, MirrorCalls
from headgate.flow.publish.sinks.writers import Mirror, MirrorVersion, VersionDifference


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


def version(number: int) -> MirrorVersion:
    return MirrorVersion("log", number, f"files-{number}")


class Counting(Mirror):
    """A mirror of numbers. ``go_on`` lets its calls end."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.asked = 0
        self.go_on = threading.Event()
        self.go_on.set()

    def held(self) -> MirrorVersion | None:
        self.asked += 1
        return None if self.number is None else version(self.number)

    def apply(self, difference: VersionDifference) -> None:
        raise NotImplementedError

    def failure(self, error: Exception) -> str | None:
        return None


class Following:
    """Brings the mirror to ``newest``, one number at a time."""

    def __init__(self, mirror: Counting) -> None:
        self.mirror, self.calls = mirror, MirrorCalls("numbers", mirror)
        self.newest = 3
        self.moved: list[int] = []

    def catch_up(self) -> bool:
        return self.calls.catch_up(self._next, lambda held: self.moved.append(held.number))

    def _next(self, held: MirrorVersion | None) -> Call | None:
        number = 0 if held is None else held.number
        return None if number == self.newest else lambda: self._to(number, number + 1)

    def _to(self, number: int, next_: int) -> MirrorVersion:
        assert self.mirror.go_on.wait(60)
        if (self.mirror.number or 0) != number:
            raise ValueError("another driver has written")
        self.mirror.number = next_
        return version(next_)


@pytest.fixture
def following(monkeypatch: pytest.MonkeyPatch) -> Iterator[Following]:
    monkeypatch.setattr(module, "BRIEFLY", 60.0)
    found = Following(Counting())
    with closing(found.calls):
        yield found


def test_changes_follow_each_other_and_it_is_asked_once(following: Following) -> None:
    assert following.catch_up()
    assert following.moved == [1, 2, 3]
    following.newest = 4
    assert following.catch_up()
    assert following.catch_up()
    assert following.moved == [1, 2, 3, 4]
    assert following.mirror.asked == 1


def test_a_new_driver_continues_from_what_the_mirror_has(following: Following) -> None:
    following.mirror.number = 2
    assert following.catch_up()
    assert following.moved == [3]


def test_a_long_call_is_not_waited_for(
    following: Following, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert following.catch_up()
    monkeypatch.setattr(module, "BRIEFLY", 0.01)
    following.newest = 4
    following.mirror.go_on.clear()
    assert not following.catch_up()
    assert not following.catch_up()
    following.mirror.go_on.set()
    while not following.catch_up():
        pass
    assert following.moved == [1, 2, 3, 4]


def test_it_is_asked_again_after_an_error(following: Following) -> None:
    """Such as a reset while the driver runs."""
    assert following.catch_up()
    following.mirror.number, following.newest = None, 4
    with pytest.raises(ValueError, match="another driver has written"):
        following.catch_up()
    assert following.catch_up()
    assert following.moved == [1, 2, 3, 1, 2, 3, 4]
    assert following.mirror.asked == 2
