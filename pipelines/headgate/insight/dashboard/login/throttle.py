"""Slows down clients that guess passwords."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

FREE = 5
"""Wrong passwords of an address before it has to wait."""
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
    """After ``FREE`` wrong passwords, an address has to wait for 1, 2, 4 … seconds between two
    attempts. Another count and wait apply to all addresses together."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._of: OrderedDict[str, _Attempts] = OrderedDict()
        self._lock = Lock()

    def attempt(self, address: str) -> float:
        """The seconds until a password of this address may be checked; 0 if it may be checked now.
        It then counts as wrong at once: otherwise all passwords that arrive together would be
        checked."""
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
        """The password was right: reset the count of the address, and take one off the common
        count."""
        with self._lock:
            self._of.pop(address, None)
            if (all_ := self._of.get(EVERYBODY)) is not None:
                all_.wrong, all_.until = max(all_.wrong - 1, 0), 0.0
