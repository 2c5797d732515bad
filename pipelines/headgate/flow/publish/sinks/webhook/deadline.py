"""Connections with a time limit for each answer as a whole.

The timeout of urllib3 applies to each piece that arrives. A receiver that sends a byte now and then
could keep a request open for hours.
"""

from __future__ import annotations

import io
import socket
import time
from functools import partial
from http.client import HTTPResponse
from typing import Any

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection


class _Bounded(io.RawIOBase):
    """Reads ``raw``, a stream of ``connection``, for at most ``seconds`` from now on."""

    def __init__(self, raw: Any, connection: socket.socket, seconds: float) -> None:
        self._raw, self._connection, self._seconds = raw, connection, seconds
        self._until = time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the answer has not ended in time")
        self._connection.settimeout(left)
        try:
            found: int | None = self._raw.readinto(buffer)
        finally:
            # The next request on this connection is sent with the timeout that the socket has then.
            self._connection.settimeout(self._seconds)
        return found

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Answer(HTTPResponse):
    def __init__(self, sock: socket.socket, *more: Any, seconds: float, **named: Any) -> None:
        super().__init__(sock, *more, **named)
        self.fp: Any = io.BufferedReader(_Bounded(self.fp.detach(), sock, seconds))


def bounded(pools: PoolManager, seconds: float) -> None:
    """Limit the time of each answer, including its body. After that time, urllib3 raises
    ReadTimeoutError."""
    answer: Any = partial(_Answer, seconds=seconds)

    class Plain(HTTPConnection):
        response_class = answer

    class Encrypted(HTTPSConnection):
        response_class = answer

    class PlainPool(HTTPConnectionPool):
        ConnectionCls = Plain

    class EncryptedPool(HTTPSConnectionPool):
        ConnectionCls = Encrypted

    pools.pool_classes_by_scheme = {"http": PlainPool, "https": EncryptedPool}
