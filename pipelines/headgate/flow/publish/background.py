"""Runs calls of a sink in the background, so that batches do not wait for them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from queue import SimpleQueue
from typing import Generic, TypeVar

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
