"""The server answers well-behaved clients, whatever the others do."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest

from headgate.insight.metrics import server as module
from headgate.insight.metrics.server import MOST_CLIENTS, MetricsServer, TokenFileError, token_of
from tests.support.waiting import wait_until

TEXT = b"headgate_running 1.0\n"
Serve = Callable[..., MetricsServer]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    monkeypatch.setattr(module, "ENDS_WITHIN", 0.01)
    with ExitStack() as ended:

        def serve(
            text: Callable[[], bytes] = lambda: TEXT, token: str | None = None
        ) -> MetricsServer:
            server = MetricsServer("127.0.0.1", 0, text, token)
            ended.callback(server.close)
            return server

        yield serve


def ask(
    server: MetricsServer, path: str = "/metrics", method: str = "GET", **headers: str
) -> tuple[HTTPResponse, bytes]:
    connection = HTTPConnection("127.0.0.1", server.port, timeout=20)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def connect(server: MetricsServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=20)


def sent(server: MetricsServer, request: bytes) -> bytes:
    """What the server answers to these bytes, until it closes the connection."""
    answer = b""
    with connect(server) as client, suppress(OSError):
        client.sendall(request)
        client.shutdown(socket.SHUT_WR)
        while part := client.recv(65_536):
            answer += part
    return answer


@pytest.mark.slow
def test_metrics_are_served(serve: Serve) -> None:
    answer, body = ask(serve())
    assert (answer.status, body) == (200, TEXT)
    assert answer.getheader("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"
    assert ask(serve(), "/metrics?name[]=a")[1] == TEXT


@pytest.mark.slow
@pytest.mark.parametrize("path", ["/", "/metric", "/metrics/", "/../etc/passwd"])
def test_there_is_nothing_else(serve: Serve, path: str) -> None:
    answer, body = ask(serve(), path)
    assert (answer.status, body) == (404, b"metrics are at /metrics\n")


def test_a_head_has_no_body(serve: Serve) -> None:
    answer, body = ask(serve(), method="HEAD")
    assert (answer.status, body, answer.getheader("Content-Length")) == (200, b"", str(len(TEXT)))


def test_other_methods_are_refused(serve: Serve) -> None:
    assert ask(serve(), method="POST")[0].status == 501


RUBBISH = [
    b"",
    b"\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET /metrics HTTP/9.9\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET " + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\n" + b"A: b\r\n" * 500 + b"\r\n",
    b"GET /metrics HTTP/1.1\r\nAuthorization: \xff\xfe\r\n\r\n",
    b"\x00" * 4096,
    b"GET http://[::1/metrics HTTP/1.1\r\n\r\n",
]


@pytest.mark.slow
@pytest.mark.parametrize("request_", RUBBISH, ids=range(len(RUBBISH)))
def test_rubbish_is_refused_and_the_next_client_is_served(
    serve: Serve, request_: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    server = serve(token="secret")
    assert TEXT not in sent(server, request_)
    assert ask(server, Authorization="Bearer secret")[1] == TEXT
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
@pytest.mark.parametrize("given", ["", "secret", "Bearer", "Bearer secre", "Bearer secrets", "ü"])
def test_without_the_token_nothing_is_served(serve: Serve, given: str) -> None:
    answer, body = ask(serve(token="secret"), Authorization=given.encode().decode("latin-1"))
    assert (answer.status, answer.getheader("WWW-Authenticate")) == (401, "Bearer")
    assert TEXT not in body


@pytest.mark.slow
def test_clients_that_say_nothing_are_cut_off(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CLIENT_GETS", 0.5)
    server = serve()
    with ExitStack() as open_:
        silent = [open_.enter_context(connect(server)) for _ in range(MOST_CLIENTS)]
        assert [client.recv(1) for client in silent] == [b""] * MOST_CLIENTS
        wait_until(lambda: server._free._value > 0, "all clients are still being served", 20)
        monkeypatch.setattr(module, "CLIENT_GETS", 20.0)
        assert ask(server)[1] == TEXT


@pytest.mark.slow
def test_a_client_that_drips_is_cut_off(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CLIENT_GETS", 0.5)
    began = time.monotonic()
    with connect(serve()) as client:
        client.settimeout(0.05)
        for byte in b"GET /metrics HTTP/1.1\r\nA: " + b"a" * 10_000:
            try:
                client.send(bytes([byte]))
                if client.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
    assert time.monotonic() - began < 10


@pytest.mark.slow
def test_clients_that_never_read_hold_nobody_up(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CLIENT_GETS", 5.0)
    large = b"a" * 20_000_000
    server = serve(lambda: large)
    with ExitStack() as open_:
        for _ in range(4):
            client = open_.enter_context(connect(server))
            client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert len(ask(server)[1]) == len(large)
        wait_until(
            lambda: server._free._value == MOST_CLIENTS, "the clients are still being served", 20
        )


@pytest.mark.slow
def test_too_many_clients_are_turned_away_at_once(serve: Serve) -> None:
    released = threading.Event()
    server = serve(lambda: TEXT if released.wait(20) else b"")
    with ExitStack() as open_:
        for _ in range(MOST_CLIENTS):
            client = open_.enter_context(connect(server))
            client.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        wait_until(lambda: server._free._value == 0, "not all are being served", 20)
        assert sent(server, b"GET /metrics HTTP/1.1\r\n\r\n") == b""
        released.set()
    wait_until(
        lambda: server._free._value == MOST_CLIENTS, "the clients are still being served", 20
    )
    assert ask(server)[1] == TEXT


def test_closing_waits_for_no_client(serve: Serve) -> None:
    server = MetricsServer("127.0.0.1", 0, lambda: TEXT)
    with connect(server) as client:
        client.sendall(b"GET")
        began = time.monotonic()
        server.close()
        assert time.monotonic() - began < 5
    with pytest.raises(ConnectionRefusedError):
        connect(server)


def test_a_port_in_use_is_an_error(serve: Serve) -> None:
    with pytest.raises(OSError, match="in use"):
        MetricsServer("127.0.0.1", serve().port, lambda: TEXT)


def test_the_token_comes_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(" secret\n")
    assert token_of(file) == "secret"
    assert token_of(None) is None
    for content in (b"", b"\n", b"\xff"):
        file.write_bytes(content)
        with pytest.raises(TokenFileError, match="token"):
            token_of(file)
    with pytest.raises(TokenFileError, match="cannot be read"):
        token_of(tmp_path / "none")
