"""Answers that are kept: a question about the same versions is answered once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from threading import Lock

MOST_BYTES = 64 << 20


class Answers:
    """Keys have the versions of the tables in them, so an answer is never out of date. While one
    thread answers a question, others that ask it wait."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes, self._bytes = most_bytes, 0
        self._kept: OrderedDict[Hashable, bytes] = OrderedDict()
        self._asked: dict[Hashable, Future[bytes]] = {}
        self._lock = Lock()

    def of(self, key: Hashable, answer: Callable[[], bytes]) -> bytes:
        """Raises what ``answer`` raises, for all who wait; the next one asks again."""
        with self._lock:
            if (found := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                return found
            waiting = self._asked.get(key)
            if waiting is None:
                mine = self._asked[key] = Future()
        if waiting is not None:
            return waiting.result()
        try:
            made = answer()
        except BaseException as error:
            with self._lock:
                del self._asked[key]
            mine.set_exception(error)
            raise
        with self._lock:
            del self._asked[key]
            self._keep(key, made)
        mine.set_result(made)
        return made

    def _keep(self, key: Hashable, made: bytes) -> None:
        self._kept[key] = made
        self._bytes += len(made)
        while self._bytes > self._most_bytes and len(self._kept) > 1:
            _, gone = self._kept.popitem(last=False)
            self._bytes -= len(gone)
