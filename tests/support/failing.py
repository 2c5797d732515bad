"""Arms failpoints in this process. Tests arm them only with these functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from headgate import failpoints

if TYPE_CHECKING:
    from tests.support.engine import Engine


class Died(BaseException):
    """Simulates the death of a process: no code catches it."""


@contextmanager
def passing(act: Callable[[str], None] | None) -> Iterator[None]:
    """Call ``act`` with the name of each failpoint that is passed."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(failpoints, "_armed", act)
        yield


@contextmanager
def failing(place: str) -> Iterator[None]:
    """Expect an error at ``place`` (NAME, or NAME:NTH counted from now)."""
    name, _, nth = place.partition(":")
    act = failpoints.armed(f"{name}:{nth or 1}:raise")
    with passing(act), pytest.raises(failpoints.FailpointError):
        yield


def catch_up_despite(engine: Engine, places: Sequence[str]) -> None:
    """Process a file for each of ``places``, in a batch whose catch-up fails there. A new driver
    takes over each time, and the last one catches up."""
    engine.list_new()
    for end, place in enumerate(places, 1):
        engine.ingest(end)
        with failing(place):
            engine.catch_up()
        engine.start()
    engine.catch_up()


@contextmanager
def dying(place: str = "", nth: int = 1, *, certainly: bool = True) -> Iterator[list[str]]:
    """End the block at the NTH failpoint whose name begins with ``place`` (NAME, or NAME:NTH), as
    if the process died there. Yields the names passed so far. Fails if that failpoint is never
    passed, unless ``certainly`` is False."""
    passed: list[str] = []
    place, _, given = place.partition(":")
    nth = int(given or nth)

    def act(name: str) -> None:
        passed.append(name)
        if name.startswith(place) and sum(p.startswith(place) for p in passed) == nth:
            raise Died(name)

    with passing(act):
        try:
            yield passed
        except Died:
            return
    assert not certainly, f"passage {nth} of {place or 'a failpoint'} never came: {passed}"
