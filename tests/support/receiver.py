"""A receiver of webhooks on loopback that answers as a test wants."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.support.waiting import wait_until


@dataclass(frozen=True)
class Request:
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def id(self) -> str:
        return self.headers["webhook-id"]


Answer = Callable[[Request], int | str]
"""A status, or ``hang`` (wait until the receiver ends) or ``close`` (close without an answer)."""


@dataclass
class Receiver:
    """``seen`` are all requests, ``took`` those that were answered with 2xx. ``answer`` may be
    replaced at any time. Each answer has the ``headers``."""

    url: str
    answer: Answer = lambda request: 200
    seen: list[Request] = field(default_factory=list)
    took: list[Request] = field(default_factory=list)
    headers: Mapping[str, str] = field(default_factory=dict)
    over: threading.Event = field(default_factory=threading.Event)

    def ids(self) -> list[str]:
        return [request.id for request in self.took]

    def wait_for(self, count: int) -> None:
        wait_until(lambda: len(self.took) >= count, "rows reach the receiver", 30)


@contextmanager
def receiving(port: int = 0) -> Iterator[Receiver]:
    """A receiver on 127.0.0.1, by default on a free port."""
    receiver = Receiver("")

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Request(self.path, headers, body)
            receiver.seen.append(request)
            answer = receiver.answer(request)
            if answer == "hang":
                receiver.over.wait()
            if isinstance(answer, str):
                self.close_connection = True
                return
            if 200 <= answer < 300:
                receiver.took.append(request)
            self.send_response(answer)
            if 300 <= answer < 400:
                self.send_header("Location", f"{receiver.url}/elsewhere")
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        allow_reuse_address = True

        def handle_error(self, request: object, client_address: object) -> None:
            return  # such as a client that has closed its connection

    with Server(("127.0.0.1", port), Handler) as server:
        receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield receiver
        finally:
            receiver.over.set()
            server.shutdown()
            thread.join()
