"""Answers that are kept: a question about the same versions is answered once."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Executor

from headgate.insight.dashboard.errors import TooMuchError

MOST_BYTES = 64 << 20
TOO_MUCH_FOR = 60.0
"""Seconds during which a question that raised TooMuchError is not asked again. Later the machine
may be less busy."""
_TOO_MUCH = 256  # questions


class Answers:
    """Keys contain the versions of the tables, so an answer is never out of date. While a thread
    answers a question, further requests for the answer wait without a thread. To be used within one
    event loop."""

    def __init__(
        self, most_bytes: int = MOST_BYTES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most_bytes, self._bytes = most_bytes, 0
        self._clock = clock
        self._kept: OrderedDict[Hashable, bytes] = OrderedDict()
        self._too_much: OrderedDict[Hashable, tuple[float, TooMuchError]] = OrderedDict()
        self._asked: dict[Hashable, asyncio.Task[bytes]] = {}

    async def of(self, key: Hashable, answer: Callable[[], bytes], threads: Executor) -> bytes:
        """The answer of a key. Raises what ``answer`` raises, in all requests that wait. The next
        request asks again, except for ``TOO_MUCH_FOR`` seconds after TooMuchError."""
        if (found := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return found
        until, error = self._too_much.get(key, (0.0, None))
        if error is not None and self._clock() < until:
            raise error.with_traceback(None)
        if (asked := self._asked.get(key)) is None:
            made = self._answered(key, answer, threads)
            asked = self._asked[key] = asyncio.create_task(made)
        # A browser that disconnects must not cancel the answer for the others.
        return await asyncio.shield(asked)

    async def _answered(
        self, key: Hashable, answer: Callable[[], bytes], threads: Executor
    ) -> bytes:
        try:
            made = await asyncio.get_running_loop().run_in_executor(threads, answer)
        except TooMuchError as error:
            self._too_much.pop(key, None)
            self._too_much[key] = (self._clock() + TOO_MUCH_FOR, error)
            if len(self._too_much) > _TOO_MUCH:
                self._too_much.popitem(last=False)
            raise
        finally:
            del self._asked[key]
        self._keep(key, made)
        return made

    def _keep(self, key: Hashable, made: bytes) -> None:
        self._kept[key] = made
        self._bytes += len(made)
        while self._bytes > self._most_bytes and len(self._kept) > 1:
            _, gone = self._kept.popitem(last=False)
            self._bytes -= len(gone)
