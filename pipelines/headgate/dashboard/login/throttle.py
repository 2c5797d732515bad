"""Slows down whoever guesses passwords."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

FREE = 5
"""Wrong passwords of an address, until it has to wait."""
_LONGEST = 60.0  # seconds
_FORGOTTEN = 900.0  # seconds after the last attempt
_MOST = 4_096  # addresses
EVERYBODY = ""
_FREE_OF_ALL = 50


@dataclass
class _Attempts:
    wrong: int = 0
    until: float = 0.0
    last: float = 0.0


class Throttle:
    """After ``FREE`` wrong passwords, an address waits for 1, 2, 4 … seconds between two. All
    addresses together have a wait, too."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._of: OrderedDict[str, _Attempts] = OrderedDict()
        self._lock = Lock()

    def attempt(self, address: str) -> float:
        """The seconds until a password of this address is looked at; 0 for now. It then counts as
        wrong at once: otherwise all that come together would be looked at."""
        now = self._clock()
        with self._lock:
            found = [self._of[each] for each in (address, EVERYBODY) if each in self._of]
            wait = max([0.0, *(each.until - now for each in found)])
            if wait == 0:
                self._count(address, now)
            return wait

    def _count(self, address: str, now: float) -> None:
        for each, free in ((address, FREE), (EVERYBODY, _FREE_OF_ALL)):
            attempts = self._of.setdefault(each, _Attempts())
            if now - attempts.last > _FORGOTTEN:
                attempts.wrong = 0
            attempts.wrong, attempts.last = attempts.wrong + 1, now
            if (over := attempts.wrong - free) >= 0:
                attempts.until = now + min(2.0 ** min(over, 10), _LONGEST)
            self._of.move_to_end(each)
        while len(self._of) > _MOST:
            self._of.popitem(last=False)

    def succeeded(self, address: str) -> None:
        """The attempt was right: it counts no more."""
        with self._lock:
            self._of.pop(address, None)
            if (all_ := self._of.get(EVERYBODY)) is not None:
                all_.wrong, all_.until = max(all_.wrong - 1, 0), 0.0
