"""A proxy on 127.0.0.1 before an HTTP server. It forwards each request, and can lose the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

import urllib3


@dataclass
class LossyProxy:
    """Forwards to ``target``. An answer is lost if ``loses`` says so of the request's body, at most
    ``left`` times; ``lost`` has the bodies of these requests. ``open`` counts the requests that
    the target has not answered."""

    target: str
    port: int = 0
    left: int = 0
    loses: Callable[[bytes], bool] = bool
    lost: list[bytes] = field(default_factory=list)
    open: int = 0
    _bodies: list[bytes] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def lose(self, loses: Callable[[bytes], bool], times: int) -> None:
        with self._lock:
            self.loses, self.left = loses, times
            self.lost.clear()

    def seen(self, text: bytes) -> int:
        """How many requests had a text in their body."""
        with self._lock:
            return sum(text in body for body in self._bodies)

    def arrives(self, body: bytes) -> None:
        with self._lock:
            self.open += 1
            self._bodies.append(body)

    def answered(self) -> None:
        with self._lock:
            self.open -= 1

    def takes(self, body: bytes) -> bool:
        """Whether the answer to this request is lost."""
        with self._lock:
            if not self.left or not self.loses(body):
                return False
            self.left -= 1
            self.lost.append(body)
            return True


@contextmanager
def lossy_proxy(target: str) -> Iterator[LossyProxy]:
    proxy = LossyProxy(target)
    pool = urllib3.PoolManager(maxsize=16, retries=False)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            kept = {k: v for k, v in self.headers.items() if k.lower() != "host"}
            proxy.arrives(body)
            try:
                answer = pool.request(
                    self.command,
                    f"{proxy.target}{self.path}",
                    body=body,
                    headers=kept,
                    decode_content=False,
                    redirect=False,
                    timeout=120,
                )
            except urllib3.exceptions.HTTPError:
                self.close_connection = True
                return
            finally:
                proxy.answered()
            if proxy.takes(body):
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.data)))
            with suppress(ConnectionError):  # the client does not wait any more
                self.end_headers()
                self.wfile.write(answer.data)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = do_HEAD = forward  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Nothing is logged."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    proxy.port = server.server_address[1]
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        pool.clear()
