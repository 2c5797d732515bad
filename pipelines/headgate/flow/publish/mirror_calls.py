"""The calls of a mirror: which version it has, then its changes, one after the other."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from datetime import datetime
from functools import partial

from headgate.flow.publish.background import Background
from headgate.flow.publish.contract import Stage
from headgate.flow.publish.position import Position
from headgate.flow.publish.sinks.writers import BRIEFLY, Mirror, Version

Call = Callable[[], Version]
"""Changes the mirror, and returns the version that it has then."""


class MirrorCalls:
    """Calls a mirror in the background, because a first load takes long. The mirror is asked for
    its version at first, and again after an error."""

    def __init__(self, name: str, mirror: Mirror) -> None:
        self._mirror = mirror
        self._background: Background[Version | None] = Background(f"mirror {name}")
        self._held: Version | None = None
        self._is_asked = False

    @property
    def is_closed(self) -> bool:
        """Whether a call under way should stop early."""
        return self._background.is_closed

    def close(self) -> None:
        self._background.close(self._mirror.close)

    def catch_up(
        self, next_: Callable[[Version | None], Call | None], moved: Callable[[Version], None]
    ) -> bool:
        """Change the mirror until it is up to date. ``next_`` returns the next call for a mirror
        that has a version (None: nothing yet), and None if there is nothing to change. ``moved`` is
        called after each change. Waits for a short time only. Returns whether the mirror is up to
        date; otherwise a call is under way. Raises the errors of the three."""
        until = time.monotonic() + (0.0 if self._background.is_busy else BRIEFLY)
        try:
            while self._background.is_busy or self._begin(next_):
                if not self._background.has_ended(max(until - time.monotonic(), 0.0)):
                    return False
                self._take(moved)
        except BaseException:
            self._is_asked = False
            raise
        return True

    def _begin(self, next_: Callable[[Version | None], Call | None]) -> bool:
        """Begin the next call. Returns whether there is anything to do."""
        call: Callable[[], Version | None] | None = self._mirror.held
        if self._is_asked:
            call = next_(self._held)
        if call is not None:
            self._background.begin(call)
        return call is not None

    def _take(self, moved: Callable[[Version], None]) -> None:
        """Take the result of the call that has ended: the version that the mirror has."""
        self._held = held = self._background.take()
        if not self._is_asked:
            self._is_asked = True
        elif held is not None:
            moved(held)


class CallingStage(Stage):
    """A stage that calls a mirror."""

    def __init__(self, position: Position, mirror: Mirror) -> None:
        super().__init__(position, mirror)
        self._mirror = mirror
        self._calls = MirrorCalls(position.table.name, mirror)

    def close(self) -> None:
        self._calls.close()

    def catch_up(self, now: datetime) -> bool:
        """Change the mirror until it has everything that is available now. Returns whether it has.
        Raises as ``Stage.catch_up``, and SinkRefusalError."""
        return self._calls.catch_up(partial(self._next, now), partial(self._moved, now))

    @abstractmethod
    def _next(self, now: datetime, held: Version | None) -> Call | None:
        """The next call for a mirror that has the version ``held``; None if there is none."""

    @abstractmethod
    def _moved(self, now: datetime, held: Version) -> None:
        """Called after each change, with the version that the mirror has then."""
