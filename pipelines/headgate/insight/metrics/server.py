"""Serves the text of the metrics by HTTP.

Each client gets a few seconds in all, and few are served at a time. So clients that never read or
send invalid data do not occupy the process.
"""

from __future__ import annotations

import hmac
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from urllib.parse import urlsplit

from headgate import exit_codes
from headgate.errors import HeadgateError
from headgate.insight.metrics.samples import CONTENT_TYPE

PATH = "/metrics"
MOST_CLIENTS = 16
CLIENT_GETS = 10.0  # seconds, for the request and the answer together
ENDS_WITHIN = 0.2  # seconds


class TokenFileError(HeadgateError, code=exit_codes.USAGE):
    """The file of the token cannot be used."""


def token_of(file: Path | None) -> str | None:
    """The token in a file; None without one. Raises TokenFileError."""
    if file is None:
        return None
    remedy = f"write a long random text into {file}, readable by you alone"
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise TokenFileError(f"{file}: the token cannot be read: {error}", remedy) from error
    if not token:
        raise TokenFileError(f"{file}: the file has no token", remedy)
    return token


class MetricsServer(ThreadingMixIn, TCPServer):
    """Listens as soon as it is created; raises OSError if it cannot. ``text`` must be cheap and
    safe in any thread. With a ``token``, only clients that send it get an answer. ``close`` ends
    it."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = MOST_CLIENTS

    def __init__(
        self, host: str, port: int, text: Callable[[], bytes], token: str | None = None
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.text, self.token = text, token
        self._free = threading.BoundedSemaphore(MOST_CLIENTS)
        super().__init__((host, port), _Handler)
        threading.Thread(
            target=self.serve_forever, args=(ENDS_WITHIN,), name="metrics server", daemon=True
        ).start()

    @property
    def port(self) -> int:
        port: int = self.server_address[1]
        return port

    def close(self) -> None:
        """Stop listening. Requests in progress are not waited for."""
        self.shutdown()
        self.server_close()

    def verify_request(self, request: Any, client_address: Any) -> bool:
        return self._free.acquire(blocking=False)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        deadline = threading.Timer(CLIENT_GETS, _cut, [request])
        deadline.daemon = True
        deadline.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            deadline.cancel()
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignored: a client that disconnects is not an error of the server."""


def _cut(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    server: MetricsServer
    server_version, sys_version = "headgate", ""
    timeout = CLIENT_GETS

    def do_GET(self) -> None:
        self._answer(with_body=True)

    def do_HEAD(self) -> None:
        self._answer(with_body=False)

    def _answer(self, *, with_body: bool) -> None:
        if not self._is_allowed():
            self._send(HTTPStatus.UNAUTHORIZED, b"a token is needed\n", with_body)
        elif urlsplit(self.path).path != PATH:
            self._send(HTTPStatus.NOT_FOUND, f"metrics are at {PATH}\n".encode(), with_body)
        else:
            self._send(HTTPStatus.OK, self.server.text(), with_body, CONTENT_TYPE)

    def _is_allowed(self) -> bool:
        if self.server.token is None:
            return True
        given = self.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
        return hmac.compare_digest(given, f"Bearer {self.server.token}".encode())

    def _send(
        self, status: HTTPStatus, body: bytes, with_body: bool, kind: str = "text/plain"
    ) -> None:
        self.send_response(status)
        if status == HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not logged."""
