"""The calls of a mirror: what it has is asked once, and again after an error."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from headgate.flow.publish import mirror_calls as module
from headgate.flow.publish.mirror_calls import Call, MirrorCalls
from headgate.flow.publish.sinks.writers import Difference, Mirror, Version


def version(number: int) -> Version:
    return Version("log", number, f"files-{number}")


class Counting(Mirror):
    """A mirror of numbers. ``go_on`` lets its calls end."""

    def __init__(self) -> None:
        self.number: int | None = None
        self.asked = 0
        self.go_on = threading.Event()
        self.go_on.set()

    def held(self) -> Version | None:
        self.asked += 1
        return None if self.number is None else version(self.number)

    def apply(self, difference: Difference) -> None:
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

    def _next(self, held: Version | None) -> Call | None:
        number = 0 if held is None else held.number
        return None if number == self.newest else lambda: self._to(number, number + 1)

    def _to(self, number: int, next_: int) -> Version:
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
