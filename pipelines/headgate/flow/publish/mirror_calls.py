"""The calls of a mirror: which version it has, then its changes, one after the other.

They run in the background, so that batches do not wait for them.
"""

from __future__ import annotations

import threading
import time
from abc import abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from datetime import datetime
from functools import partial
from queue import SimpleQueue
from typing import Generic, TypeVar

from headgate.flow.publish.publication import PublicationStage, PublishedPosition
from headgate.flow.publish.sinks.writers import BRIEFLY, Mirror, MirrorVersion

Result = TypeVar("Result")

_AT_THE_END = 5.0  # seconds for which the end of a driver waits for a call


class Background(Generic[Result]):
    """A daemon thread that runs one call at a time. It starts at the first call. All calls use the
    same thread, because each Python thread that uses Spark is bound to a JVM thread."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._under_way: Future[Result] | None = None
        self.is_closed = False
        """Whether a call under way should stop early."""

    @property
    def is_busy(self) -> bool:
        """Whether a call has begun whose result has not been taken."""
        return self._under_way is not None

    def begin(self, call: Callable[[], Result]) -> None:
        """Begin a call. The result of the previous call must have been taken."""
        assert self._under_way is None
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=self._name, daemon=True)
            self._thread.start()
        future: Future[Result] = Future()
        self._under_way = future
        self._calls.put(lambda: _carry_out(call, future))

    def has_ended(self, within: float) -> bool:
        """Wait for the call under way, at most ``within`` seconds. Returns whether it has ended."""
        return self._under_way is not None and bool(wait([self._under_way], within).done)

    def take(self) -> Result:
        """The result of the call that has ended. Raises its error."""
        assert self._under_way is not None
        ended, self._under_way = self._under_way, None
        return ended.result()

    def close(self, last: Callable[[], None]) -> None:
        """Run a last call on the thread, then end the thread. Waits a few seconds for the call
        under way, which can see ``is_closed``. If there is no thread, the caller runs the last
        call."""
        self.is_closed = True
        if self._thread is None:
            last()
            return
        self._calls.put(last)
        self._calls.put(None)
        self._thread.join(_AT_THE_END)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            with suppress(Exception):
                call()


def _carry_out(call: Callable[[], Result], future: Future[Result]) -> None:
    try:
        future.set_result(call())
    except BaseException as error:
        future.set_exception(error)


Call = Callable[[], MirrorVersion]
"""Changes the mirror, and returns the version that it has then."""


class MirrorCalls:
    """Calls a mirror in the background, because a first load takes long. The mirror is asked for
    its version at first, and again after an error."""

    def __init__(self, name: str, mirror: Mirror) -> None:
        self._mirror = mirror
        self._background: Background[MirrorVersion | None] = Background(f"mirror {name}")
        self._held: MirrorVersion | None = None
        self._is_asked = False

    @property
    def is_closed(self) -> bool:
        """Whether a call under way should stop early."""
        return self._background.is_closed

    def close(self) -> None:
        self._background.close(self._mirror.close)

    def catch_up(
        self,
        next_: Callable[[MirrorVersion | None], Call | None],
        moved: Callable[[MirrorVersion], None],
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

    def _begin(self, next_: Callable[[MirrorVersion | None], Call | None]) -> bool:
        """Begin the next call. Returns whether there is anything to do."""
        call: Callable[[], MirrorVersion | None] | None = self._mirror.held
        if self._is_asked:
            call = next_(self._held)
        if call is not None:
            self._background.begin(call)
        return call is not None

    def _take(self, moved: Callable[[MirrorVersion], None]) -> None:
        """Take the result of the call that has ended: the version that the mirror has."""
        self._held = held = self._background.take()
        if not self._is_asked:
            self._is_asked = True
        elif held is not None:
            moved(held)


class CallingStage(PublicationStage):
    """A stage that calls a mirror."""

    def __init__(self, position: PublishedPosition, mirror: Mirror) -> None:
        super().__init__(position, mirror)
        self._mirror = mirror
        self._calls = MirrorCalls(position.table.name, mirror)

    def close(self) -> None:
        self._calls.close()

    def catch_up(self, now: datetime) -> bool:
        """Change the mirror until it has everything that is available now. Returns whether it has.
        Raises as ``PublicationStage.catch_up``, and SinkRefusalError."""
        return self._calls.catch_up(partial(self._next, now), partial(self._moved, now))

    @abstractmethod
    def _next(self, now: datetime, held: MirrorVersion | None) -> Call | None:
        """The next call for a mirror that has the version ``held``; None if there is none."""

    @abstractmethod
    def _moved(self, now: datetime, held: MirrorVersion) -> None:
        """Called after each change, with the version that the mirror has then."""
