"""Sends one request to a receiver, and reads from the answer whether the row was accepted."""

from __future__ import annotations

import io
import logging
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http.client import HTTPResponse
from typing import Any
from urllib.parse import quote

import urllib3
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    LocationParseError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ReadTimeoutError,
    SSLError,
)

from headgate.flow.publish.sinks.webhook.declared import WebhookSink
from headgate.flow.publish.sinks.webhook.signing import signature


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


def limit_answers(pools: PoolManager, seconds: float) -> None:
    """Limit the time of each answer, including its body. After that time, urllib3 raises
    ReadTimeoutError. Its own timeout applies to each piece that arrives: a receiver that sends a
    byte now and then could keep a request open for hours."""
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


CONNECT, READ = 5.0, 10.0  # seconds
CONNECTIONS = 4
"""The maximum number of concurrent requests. Requests with one key are never concurrent."""
_LONGEST = 1_000  # characters of a header
_READ_OF_ANSWER = 64 << 10  # bytes; after a shorter answer, the connection is used again
# Status codes that are about the receiver or the address, and not about the row.
_AWAY = {401, 403, 404, 405, 407, 408, 421, 425, 429, 502, 503, 504}
_TOO_MANY = 429
_NOT_REACHED = (
    NewConnectionError,
    ConnectTimeoutError,
    NameResolutionError,
    SSLError,
    LocationParseError,  # an invalid host, which is no fault of a row
)


@dataclass(frozen=True)
class Message:
    """A row as a request. Rows with the same ``key`` are sent in order; rows without a key are not
    ordered. ``headers`` are those of the row, without the id."""

    id: str
    key: bytes | None
    body: bytes
    headers: Mapping[str, str]


@dataclass(frozen=True)
class RequestOutcome:
    """``is_away``: the receiver is unavailable, or refuses every row. Otherwise ``why`` is about
    this row; it is empty if the row was accepted. ``wait`` is how many seconds the receiver asks to
    wait for; 0 if it does not ask. ``is_busy``: it limits the rate of rows, and is unavailable only
    if it accepts none for some time."""

    why: str = ""
    is_away: bool = False
    wait: float = 0.0
    is_busy: bool = False

    @property
    def taken(self) -> bool:
        return not self.why


class Receiver:
    """Redirects are not followed, because they would send the rows and the secrets to another
    server. ``seconds`` returns the seconds since 1970. No outcome contains the url, a header or the
    text of an answer."""

    def __init__(self, sink: WebhookSink, seconds: Callable[[], float] = time.time) -> None:
        # Warnings of urllib3 quote the url, and all warnings go to the log.
        logging.getLogger("urllib3").setLevel(logging.ERROR)
        self._sink, self._seconds = sink, seconds
        self._pool = urllib3.PoolManager(
            num_pools=1,
            maxsize=CONNECTIONS,
            retries=False,
            timeout=urllib3.Timeout(connect=CONNECT, read=READ),
        )
        limit_answers(self._pool, READ)

    def post(self, message: Message) -> RequestOutcome:
        """Send one row, once. Blocks for about 15 seconds at most."""
        try:
            answer = self._pool.request(
                "POST",
                self._sink.url,
                body=message.body,
                headers=self._headers(message),
                redirect=False,
                preload_content=False,
            )
        except _NOT_REACHED as error:
            return RequestOutcome(f"cannot be reached ({type(error).__name__})", is_away=True)
        except ReadTimeoutError:
            return RequestOutcome(f"has not answered within {READ:.0f} seconds")
        except (ProtocolError, HTTPError) as error:
            return RequestOutcome(f"has ended the connection ({type(error).__name__})")
        try:
            if len(answer.read(_READ_OF_ANSWER)) < _READ_OF_ANSWER:
                answer.release_conn()
            else:
                answer.close()  # the rest would be read as the answer to the next request
        except HTTPError:
            answer.close()  # the status is sufficient; the rest of the body may never come
        return _outcome(answer.status, answer.headers.get("Retry-After", ""))

    def _headers(self, message: Message) -> dict[str, str]:
        seconds = int(self._seconds())
        is_bytes = message.headers.get("headgate-table", "").startswith("quarantine.")
        found = {
            "User-Agent": "headgate",
            **self._sink.headers,
            "Content-Type": "application/octet-stream" if is_bytes else "application/json",
            **{name: as_header(value) for name, value in message.headers.items()},
            "headgate-id": message.id,
            "webhook-id": message.id,
            "webhook-timestamp": str(seconds),
        }
        if self._sink.secret is not None:
            signed = signature(self._sink.secret, message.id, seconds, message.body)
            found["webhook-signature"] = signed
        return found


def as_header(text: str) -> str:
    """A text as the value of a header: truncated, with characters that a header cannot have
    percent-encoded."""
    return quote(text[:_LONGEST], safe=" !\"#$&'()*+,/:;<=>?@[\\]^`{|}~")


def _outcome(status: int, retry_after: str) -> RequestOutcome:
    if 200 <= status < 300:
        return RequestOutcome()
    if 300 <= status < 400:
        return RequestOutcome(
            f"answers {status}: write the address to which it redirects", is_away=True
        )
    wait = float(retry_after) if retry_after.isdecimal() else 0.0  # it may also be a date
    is_away = status in _AWAY
    is_busy = status == _TOO_MANY or (is_away and wait > 0)
    return RequestOutcome(f"answers {status}", is_away, wait, is_busy)
