"""LoginSessions of browsers that have logged in. They end with the process."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

LASTS = 12 * 3600.0  # seconds
_MOST = 1_000


class LoginSessions:
    """Tokens are kept as digests, so a dump of the memory has none."""

    def __init__(self, lasts: float = LASTS, clock: Callable[[], float] = time.monotonic) -> None:
        self._lasts, self._clock = lasts, clock
        self._until: OrderedDict[bytes, float] = OrderedDict()
        self._lock = Lock()

    def begin(self) -> str:
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._until[_digest(token)] = self._clock() + self._lasts
            while len(self._until) > _MOST:
                self._until.popitem(last=False)
        return token

    def is_open(self, token: str | None) -> bool:
        if not token:
            return False
        with self._lock:
            until = self._until.get(_digest(token))
            return until is not None and self._clock() < until

    def end(self, token: str | None) -> None:
        if token:
            with self._lock:
                self._until.pop(_digest(token), None)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
